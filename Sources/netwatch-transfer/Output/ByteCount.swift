/// Numbers of bytes as text, in powers of 1024.
enum ByteCount {
    private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    /// Returns a number of bytes as `512 B`, `1.2 KiB`, `61.4 MiB` or `1.0 GiB`.
    static func text(_ bytes: Int64) -> String {
        var unit = 0
        // Computed in tenths, so that no value is rounded up to 1024.0.
        var value = max(0, bytes)
        guard value >= 1024 else { return "\(value) B" }
        var tenths = value
        while value >= 1024, unit < units.count - 1 {
            tenths = value / 1024 * 10 + value % 1024 * 10 / 1024
            value /= 1024
            unit += 1
        }
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }

    /// Returns a rate as bytes per second.
    static func rate(_ bytesPerSecond: Int64) -> String { "\(text(bytesPerSecond))/s" }

    /// Parses an integer of bytes with an optional suffix `k`, `M`, `G` or `T`, as in curl. Returns `nil` for any other text,
    /// and unless the number is above zero.
    static func parse(_ text: String) -> Int64? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let factor: Int64
        switch text.dropFirst(digits.count) {
        case "": factor = 1
        case "k", "K": factor = 1 << 10
        case "m", "M": factor = 1 << 20
        case "g", "G": factor = 1 << 30
        case "t", "T": factor = 1 << 40
        default: return nil
        }
        guard let number = Int64(digits), number > 0 else { return nil }
        let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
        return overflow ? nil : bytes
    }
}
