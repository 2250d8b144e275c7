import Expectations
import Testing

@testable import netwatch_service

@Suite struct RetentionClockTests {
    private static let (hour, day): (Int64, Int64) = (3_600_000, 86_400_000)

    @Test func `the time follows the wall clock`() {
        var clock = RetentionClock(100 * Self.day, at: 0)
        expectEqual(clock.read(wall: 100 * Self.day + Self.hour, monotonic: Self.hour), 100 * Self.day + Self.hour)
        expectEqual(clock.read(wall: 99 * Self.day, monotonic: 2 * Self.hour), 99 * Self.day)
    }

    @Test func `a wall clock that is set far forward counts after an hour`() {
        var clock = RetentionClock(100 * Self.day, at: 0)
        let later = 2_000 * Self.day
        expectEqual(clock.read(wall: later, monotonic: 5_000), 100 * Self.day + 5_000)
        expectEqual(clock.read(wall: later + Self.hour, monotonic: 5_000 + Self.hour), later + Self.hour)
    }

    @Test func `a wall clock that is set back in time never counts`() {
        var clock = RetentionClock(100 * Self.day, at: 0)
        _ = clock.read(wall: 2_000 * Self.day, monotonic: 5_000)
        expectEqual(clock.read(wall: 100 * Self.day + 10_000, monotonic: 10_000), 100 * Self.day + 10_000)
        expectEqual(clock.read(wall: 3_000 * Self.day, monotonic: 2 * Self.hour), 100 * Self.day + 2 * Self.hour)
    }
}
