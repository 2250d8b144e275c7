/// The limits of the history. Older data are removed, and so are the finest and oldest data of a history that is too large.
struct Retention: Hashable, Sendable {
    /// The maximum size of the database in bytes.
    var size: Int64 = 2 << 30
    /// The days for which each result is kept.
    var samples = 7
    /// The days for which the summary of each hour is kept.
    var hours = 90
    /// The days for which the summary of each day, and incidents are kept.
    var days = 1_825

    private typealias Key = ConfigurationKey<Retention>

    /// The smallest ``size``.
    private static let minimumSize: Int64 = 16 << 20

    static let keys = ConfigurationKeys<Retention>([
        Key(
            "size", \.size,
            .parsed(limits: "at least `\(ByteSize.text(minimumSize))`", text: ByteSize.text) {
                try ByteSize.parse($0, minimum: minimumSize)
            },
            "the size of the database, beyond which the finest and oldest data are removed"
        ),
        Key("samples", \.samples, .days, "the days for which each result is kept"),
        Key("hours", \.hours, .days, "the days for which the summary of each hour is kept"),
        Key("days", \.days, .days, "the days for which the summary of each day, and incidents, are kept"),
    ])

    /// The limits that have no purpose beside the others, in words. Coarser data are there to outlast finer ones.
    var contradictions: [String] {
        let pairs = [(("samples", samples), ("hours", hours)), (("hours", hours), ("days", days))]
        return pairs.filter { $0.0.1 > $0.1.1 }.map { finer, coarser in
            "'retention.\(finer.0)' (\(finer.1)d) is longer than 'retention.\(coarser.0)' (\(coarser.1)d)"
        }
    }
}

/// A number of bytes as people write it: `512MiB`, `2GiB`, `1GB`.
enum ByteSize {
    static let form = "write a whole number with KB, MB, GB, KiB, MiB or GiB, as in 2GiB"
    private static let units: [(name: String, bytes: Int64)] = [
        ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40), ("KB", 1_000), ("MB", 1_000_000),
        ("GB", 1_000_000_000), ("TB", 1_000_000_000_000),
    ]

    /// Returns the number of bytes. - Parameter minimum: the smallest valid number.
    static func parse(_ text: String, minimum: Int64 = 1) throws(ConfigurationReader.Invalid) -> Int64 {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard !digits.isEmpty, let unit = units.first(where: { $0.name == text.dropFirst(digits.count) }) else {
            throw ConfigurationReader.Invalid("not a size; \(form)")
        }
        guard let number = Int64(digits), case let (bytes, overflows) = number.multipliedReportingOverflow(by: unit.bytes),
            !overflows
        else { throw ConfigurationReader.Invalid("too large; \(form)") }
        guard bytes >= minimum else { throw ConfigurationReader.Invalid("the smallest is \(self.text(minimum))") }
        return bytes
    }

    /// Returns the number in the largest unit that needs no fraction.
    static func text(_ bytes: Int64) -> String {
        let unit = units.filter { bytes % $0.bytes == 0 && bytes >= $0.bytes }.max { $0.bytes < $1.bytes }
        return unit.map { "\(bytes / $0.bytes)\($0.name)" } ?? "\(bytes / 1024)KiB"
    }
}

/// A number of days as people write it: `7d`.
enum DayCount {
    /// Returns the number of days, from 1 to 36,500.
    static func parse(_ text: String) throws(ConfigurationReader.Invalid) -> Int {
        guard text.last == "d", let days = Int(text.dropLast()), text.first?.isNumber == true, 1...36_500 ~= days else {
            throw ConfigurationReader.Invalid("write a number of days from 1d to 36500d, as in 7d")
        }
        return days
    }
}

extension ConfigurationForm<Int> {
    fileprivate static var days: Self { .parsed(text: { "\($0)d" }, DayCount.parse) }
}
