@testable import Reachability

extension FuzzDriver {
    /// A schedule of cron in the first line, and a file of the tz database behind it.
    static let schedule = FuzzDriver(name: "schedule") { input in
        let line = input.prefix { $0 != 0x0a }
        let zone = TimeZoneRules(Array(input.dropFirst(line.count + 1)))
        var random = randomNumbers(for: input)
        if let zone {
            for _ in 0..<16 {
                let time = Int64.random(in: .min...(.max), using: &random)
                try require(abs(zone.offset(at: time)) <= 93_600, "the offset \(zone.offset(at: time)) at \(time)")
            }
        }
        guard let schedule = try? CronSchedule(String(decoding: line, as: UTF8.self)) else { return }
        let start = Int64.random(in: 0...4_102_444_800, using: &random)
        guard let first = schedule.next(after: start, in: zone ?? .utc) else {
            return try require(zone != nil, "a schedule without a time in UTC")
        }
        try require(first > start && first % 60 == 0 || zone != nil && first > start, "\(first) follows \(start)")
        // No time between them is one, whatever it is asked after.
        let between = Int64.random(in: start..<first, using: &random)
        try require(schedule.next(after: between, in: zone ?? .utc) == first, "another time after \(between) than \(first)")
    }
}
