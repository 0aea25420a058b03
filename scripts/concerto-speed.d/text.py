def main():
    all = ""
    pieces = []
    for i in range(200000):
        all += "x"
        pieces.append(f"{i}: {i * 2};")
    print(len(all), len("".join(pieces)))


main()
