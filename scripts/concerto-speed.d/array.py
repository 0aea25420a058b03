def main():
    total = 0
    for round in range(5):
        xs = []
        for i in range(200000):
            xs.append(i + round)
        for i in range(200000):
            xs[i] += 1
        total += xs[199999]
    print(total)


main()
