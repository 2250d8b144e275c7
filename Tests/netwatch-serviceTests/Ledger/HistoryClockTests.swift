import Testing

@testable import netwatch_service

@Suite struct HistoryClockTests {
    private static let minute: Int64 = 60_000

    @Test func `the time continues with the wall clock, also if that is adjusted slowly`() {
        var clock = HistoryClock(wall: 1_000_000, monotonic: 0, bootTime: 0)
        #expect(clock.read(wall: 1_010_000, monotonic: 10_000, bootTime: 10_000) == .time(1_010_000))
        #expect(clock.read(wall: 1_020_400, monotonic: 20_000, bootTime: 20_000) == .time(1_020_400))
        #expect(clock.read(wall: 1_029_700, monotonic: 30_000, bootTime: 30_000) == .time(1_029_700))
    }

    @Test func `a clock that is set forward leaves a gap`() {
        var clock = HistoryClock(wall: 1_000_000, monotonic: 0, bootTime: 0)
        #expect(clock.read(wall: 5_000_250, monotonic: 250, bootTime: 250) == .gap(1_000_250..<5_000_250, .clockSet))
        #expect(clock.read(wall: 5_000_500, monotonic: 500, bootTime: 500) == .time(5_000_500))
    }

    @Test func `a suspend is a gap`() {
        var clock = HistoryClock(wall: 1_000_000, monotonic: 0, bootTime: 0)
        #expect(clock.read(wall: 1_060_250, monotonic: 250, bootTime: 60_250) == .gap(1_000_250..<1_060_250, .suspended))
    }

    @Test func `after a clock is set back, nothing is recorded twice`() {
        var clock = HistoryClock(wall: 10 * Self.minute, monotonic: 0, bootTime: 0)
        #expect(clock.read(wall: 5 * Self.minute, monotonic: 250, bootTime: 250) == .repeated)
        #expect(clock.read(wall: 9 * Self.minute, monotonic: 4 * Self.minute, bootTime: 4 * Self.minute) == .repeated)
        #expect(
            clock.read(wall: 10 * Self.minute + 250, monotonic: 5 * Self.minute + 250, bootTime: 5 * Self.minute + 250)
                == .time(10 * Self.minute + 250))
    }

    @Test func `after a clock is set back by more than an hour, the later history is withdrawn`() {
        var clock = HistoryClock(wall: 1_000 * Self.minute, monotonic: 0, bootTime: 0)
        #expect(clock.read(wall: 900 * Self.minute, monotonic: 250, bootTime: 250) == .withdraw(after: 900 * Self.minute))
        #expect(clock.read(wall: 900 * Self.minute + 250, monotonic: 500, bootTime: 500) == .time(900 * Self.minute + 250))
    }

    @Test func `a start before the recorded time waits for it, or withdraws it`() {
        var clock = HistoryClock(wall: 10 * Self.minute, monotonic: 0, bootTime: 0, last: 11 * Self.minute)
        #expect(clock.read(wall: 10 * Self.minute + 250, monotonic: 250, bootTime: 250) == .repeated)
        clock = HistoryClock(wall: 10 * Self.minute, monotonic: 0, bootTime: 0, last: 1_000 * Self.minute)
        #expect(
            clock.read(wall: 10 * Self.minute + 250, monotonic: 250, bootTime: 250) == .withdraw(after: 10 * Self.minute + 250))
    }
}
