def main():
    m = {}
    for i in range(200000):
        m[f"k{i}"] = i
    sum = 0
    for _key, value in m.items():
        sum += value
    print(len(m), sum)


main()
