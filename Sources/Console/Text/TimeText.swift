import FoundationEssentials
import Pacing
package import Reachability

/// The times of lines for people: since the start of a stream, or those of a clock.
package struct TimeText: Sendable {
    /// The value of `--time`.
    package enum Choice: String, CaseIterable, Sendable {
        /// The time since the start of a stream; in a list of the past, the time until now.
        case relative
        /// The clock of this machine's time zone.
        case local
        case utc
    }

    package private(set) var choice: Choice
    /// Returns the seconds by which local time is ahead of UTC, at a time in nanoseconds since 1970.
    private let offset: @Sendable (Int64) -> Int
    private var start: Moment?
    private var day: Int64?

    package init(_ choice: Choice, offset: @escaping @Sendable (Int64) -> Int) {
        (self.choice, self.offset) = (choice, offset)
    }

    /// Creates the same times in another form.
    package init(_ other: TimeText, as choice: Choice) {
        self = other
        self.choice = choice
    }

    /// The columns of ``clock(_:)``; longer times are rare.
    package var width: Int { choice == .relative ? 10 : 12 }

    /// Notes the start of a stream, from which relative times count.
    package mutating func begin(at moment: Moment) {
        start = moment
        day = localDay(moment)
    }

    /// Returns the time of a line: `+3.120s`, or `14:00:03.120`.
    package func clock(_ moment: Moment) -> String {
        guard choice != .relative else { return TimeSpan.offset(moment.elapsed(since: start ?? moment)) }
        return String(text(moment).dropFirst(11).prefix(12))
    }

    /// Returns the date if the moment is on another day than the one before, as `2026-08-03`. Relative times have no date.
    package mutating func newDate(_ moment: Moment) -> String? {
        let present = localDay(moment)
        defer { day = present }
        guard choice != .relative, let day, day != present else { return nil }
        return String(text(moment).prefix(10))
    }

    /// Returns the date; `nil` for relative times.
    package func date(_ moment: Moment) -> String? { choice == .relative ? nil : String(text(moment).prefix(10)) }

    /// Returns the complete time: `2026-08-02T12:00:03.120Z`, `2026-08-02T14:00:03.120+02:00`, or `+3.120s`.
    package func full(_ moment: Moment) -> String {
        switch choice {
        case .relative: clock(moment)
        case .utc: text(moment)
        case .local: text(moment).dropLast() + zone(moment)
        }
    }

    /// Returns a time of the past: as ``full(_:)`` without milliseconds, or `2h03m ago`.
    package func past(_ moment: Moment, now: Moment) -> String {
        guard choice != .relative else {
            let nanoseconds = now.wallClockNanoseconds.subtractingReportingOverflow(moment.wallClockNanoseconds).partialValue
            return "\(TimeSpan.rough(.nanoseconds(nanoseconds))) ago"
        }
        return "\(text(moment).prefix(19))\(choice == .utc ? "Z" : zone(moment))"
    }

    private func seconds(_ moment: Moment) -> Int { choice == .local ? offset(moment.wallClockNanoseconds) : 0 }

    private func localDay(_ moment: Moment) -> Int64 {
        moment.wallClockNanoseconds.addingSaturated(Int64(seconds(moment)) * 1_000_000_000)
            .floorDivided(by: 86_400_000_000_000).quotient
    }

    /// The date and time of the clock, followed by a `Z` that is right only for UTC.
    private func text(_ moment: Moment) -> String {
        Timestamp.text(
            wallClockNanoseconds: moment.wallClockNanoseconds.addingSaturated(Int64(seconds(moment)) * 1_000_000_000))
    }

    /// The offset from UTC: `+02:00` (RFC 3339 section 5.6).
    private func zone(_ moment: Moment) -> String {
        let minutes = abs(seconds(moment)) / 60
        let (hours, rest) = ("\(100 + minutes / 60 % 24)".dropFirst(), "\(100 + minutes % 60)".dropFirst())
        return "\(seconds(moment) < 0 ? "-" : "+")\(hours):\(rest)"
    }
}
