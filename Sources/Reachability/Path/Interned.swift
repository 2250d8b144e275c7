/// Values that are stored once, each under a number. A number is released when as many uses have ended as began.
struct Interned<Value: Hashable & Sendable>: Sendable {
    // The value of a number without uses is out of date, and is replaced when the number is used again.
    private var values: [Value] = []
    private var uses: [UInt32] = []
    private var numbers: [Value: UInt32] = [:]
    private var free: [UInt32] = []
    // Neighboring routes of a dump are mostly alike, and a comparison costs less than a hash.
    private var latest: UInt32 = 0

    init() {}

    /// The number of different values in use.
    var count: Int { numbers.count }

    subscript(number: UInt32) -> Value { values[Int(number)] }

    /// Returns the number of a value in use; `nil` if it is not in use.
    func number(of value: Value) -> UInt32? {
        if isLatest(value) { return latest }
        return numbers[value]
    }

    /// Returns the results of `transform`, indexed by number. Numbers without uses have a result too.
    func map<Result>(_ transform: (Value) -> Result) -> [Result] { values.map(transform) }

    /// Begins a use of a value, and returns its number.
    mutating func retain(_ value: Value) -> UInt32 {
        if !isLatest(value) {
            if let known = numbers[value] {
                latest = known
            } else if let number = free.popLast() {
                (values[Int(number)], latest) = (value, number)
                numbers[value] = number
            } else {
                latest = UInt32(values.count)
                values.append(value)
                uses.append(0)
                numbers[value] = latest
            }
        }
        uses[Int(latest)] += 1
        return latest
    }

    /// Ends a use.
    mutating func release(_ number: UInt32) {
        uses[Int(number)] -= 1
        guard uses[Int(number)] == 0 else { return }
        numbers[values[Int(number)]] = nil
        free.append(number)
    }

    private func isLatest(_ value: Value) -> Bool {
        let place = Int(latest)
        return place < values.count && uses[place] > 0 && values[place] == value
    }
}
