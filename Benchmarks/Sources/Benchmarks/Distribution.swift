/// Measured values, sorted.
struct Distribution {
    private let sorted: [Double]

    init(_ values: [Double]) { sorted = values.sorted() }

    var count: Int { sorted.count }
    var median: Double { quantile(0.5) }
    var p99: Double { quantile(0.99) }

    /// The smallest value that at least this share of all values does not exceed; 0 if there are no values.
    func quantile(_ share: Double) -> Double {
        guard !sorted.isEmpty else { return 0 }
        return sorted[min(sorted.count - 1, max(0, Int((share * Double(sorted.count)).rounded(.up)) - 1))]
    }
}
