import Expectations
import Testing

@testable import netwatch_service

@Suite struct HistoryClockTests {
    private static let minute: Int64 = 60_000

    @Test func `the time continues with the wall clock, also if that is adjusted slowly`() {
        var clock = HistoryClock(Self.at(1_000_000, 0))
        expectEqual(clock.read(Self.at(1_010_000, 10_000)), .time(1_010_000))
        expectEqual(clock.read(Self.at(1_020_400, 20_000)), .time(1_020_400))
        expectEqual(clock.read(Self.at(1_029_700, 30_000)), .time(1_029_700))
    }

    @Test func `a clock that is set forward leaves a gap`() {
        var clock = HistoryClock(Self.at(1_000_000, 0))
        expectEqual(clock.read(Self.at(5_000_250, 250)), .gap(1_000_250..<5_000_250, .clockSet))
        expectEqual(clock.read(Self.at(5_000_500, 500)), .time(5_000_500))
    }

    @Test func `a suspend is a gap`() {
        var clock = HistoryClock(Self.at(1_000_000, 0))
        expectEqual(clock.read(Self.at(1_060_250, 250, boot: 60_250)), .gap(1_000_250..<1_060_250, .suspended))
    }

    @Test func `after a clock is set back, nothing is recorded twice`() {
        var clock = HistoryClock(Self.at(10 * Self.minute, 0))
        expectEqual(clock.read(Self.at(5 * Self.minute, 250)), .repeated)
        expectEqual(clock.read(Self.at(9 * Self.minute, 4 * Self.minute)), .repeated)
        expectEqual(
            clock.read(Self.at(10 * Self.minute + 250, 5 * Self.minute + 250)),
            .time(10 * Self.minute + 250))
    }

    @Test func `after a clock is set back by more than an hour, the later history is withdrawn`() {
        var clock = HistoryClock(Self.at(1_000 * Self.minute, 0))
        expectEqual(clock.read(Self.at(900 * Self.minute, 250)), .withdraw(after: 900 * Self.minute))
        expectEqual(clock.read(Self.at(900 * Self.minute + 250, 500)), .time(900 * Self.minute + 250))
    }

    @Test func `a start before the recorded time waits for it`() {
        var clock = HistoryClock(Self.at(10 * Self.minute, 0), last: 11 * Self.minute)
        expectEqual(clock.read(Self.at(10 * Self.minute + 250, 250)), .repeated)
    }

    @Test func `a clock that starts in the past keeps the history of earlier runs until it has the right time`() {
        let last = 1_000_000 * Self.minute
        var clock = HistoryClock(Self.at(0, 0), last: last)
        expectEqual(clock.read(Self.at(2 * Self.minute, 2 * Self.minute)), .repeated)
        expectEqual(
            clock.read(Self.at(last + 10 * Self.minute, 3 * Self.minute)),
            .gap(last + Self.minute..<last + 10 * Self.minute, .clockSet))
    }

    @Test func `a time of an earlier run is believed after a day`() {
        let (last, day) = (1_000_000 * Self.minute, HistoryClock.proof)
        var clock = HistoryClock(Self.at(0, 0), last: last)
        expectEqual(clock.read(Self.at(250, 250)), .repeated)
        expectEqual(clock.read(Self.at(day, day)), .repeated)
        expectEqual(clock.read(Self.at(day + 250, day + 250)), .withdraw(after: day + 250))
        expectEqual(clock.read(Self.at(day + 500, day + 500)), .time(day + 500))
    }

    @Test func `a clock that was set far forward and back withdraws only what it has recorded since`() {
        let (start, year) = (1_000 * Self.minute, 525_600 * Self.minute)
        var clock = HistoryClock(Self.at(start, 0), last: start - 10 * Self.minute)
        expectEqual(clock.read(Self.at(start + year, 250)), .gap(start + 250..<start + year, .clockSet))
        expectEqual(clock.read(Self.at(start + year + 5_000, 5_250)), .time(start + year + 5_000))
        expectEqual(clock.read(Self.at(start + 5_500, 5_500)), .withdraw(after: start + 5_500))
    }

    @Test func `after an hour with the same clock, the time of this run is believed too`() {
        let (start, hour) = (1_000_000 * Self.minute, 60 * Self.minute)
        var clock = HistoryClock(Self.at(start, 0))
        expectEqual(clock.read(Self.at(start + hour, hour)), .time(start + hour))
        expectEqual(clock.read(Self.at(start - 100 * hour, hour + 250)), .repeated)
        expectEqual(clock.read(Self.at(start + hour + 1_000, hour + 1_000)), .time(start + hour + 1_000))
        // A clock that was set forward is not believed at once.
        let future = start + 1_000 * hour
        expectEqual(clock.read(Self.at(future, hour + 1_250)), .gap(start + hour + 1_250..<future, .clockSet))
        expectEqual(clock.read(Self.at(start + hour + 2_000, hour + 2_000)), .withdraw(after: start + hour + 2_000))
    }

    @Test func `a time in which the process did not run is a gap`() {
        var clock = HistoryClock(Self.at(1_000_000, 0))
        expectEqual(clock.read(Self.at(1_030_000, 30_000), isLate: true), .gap(1_000_000..<1_030_000, .stopped))
        expectEqual(clock.read(Self.at(1_030_250, 30_250)), .time(1_030_250))
    }

    /// A reading of the clocks. The machine was not suspended if both have the same time since the boot.
    private static func at(_ wall: Int64, _ monotonic: Int64, boot: Int64? = nil) -> ClockReading {
        ClockReading(wall: wall, monotonic: monotonic, bootTime: boot ?? monotonic)
    }
}
