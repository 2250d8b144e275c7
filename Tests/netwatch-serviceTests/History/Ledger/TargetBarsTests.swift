import Expectations
import Pacing
import Testing

@testable import netwatch_service

@Suite struct TargetBarsTests {
    private static let hour: Int64 = 3_600_000

    @Test func `the last cell of each bar contains the present time`() {
        var calendar = DayCalendar { _ in 0 }
        let now = 1_000 * Self.hour + 5
        let frame = BarFrame(at: now, in: &calendar)
        for span in BarSpan.allCases {
            let cells = frame.cells[span]
            expectEqual(cells.count, span.cells)
            #expect(cells.last?.contains(now) == true)
            expectEqual(frame.place(of: now, in: span), span.cells - 1)
            // Cells follow each other.
            #expect(zip(cells, cells.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound })
            expectEqual(frame.place(of: cells[0].lowerBound, in: span), 0)
            expectNil(frame.place(of: cells[0].lowerBound - 1, in: span))
        }
        #expect(!frame.isOutdated(at: now))
        #expect(frame.isOutdated(at: now + Self.hour))
    }

    @Test func `a cell has the times of its state, with an error of at most a unit`() {
        var times = StateTimes()
        times[.up] = 24 * Self.hour - 12_345
        times[.down] = 12_345
        let cell = BarCell(times)
        #expect(abs(cell.times[.down] - 12_345) <= 1_385)
        #expect(abs(cell.times.total - 24 * Self.hour) <= 2 * 1_385)
        expectEqual(cell.state, .down)
        expectEqual(BarCell().state, .notRecorded)
        expectEqual(BarCell().times, StateTimes())
    }

    @Test func `an outage of a millisecond is shown`() {
        var times = StateTimes()
        times[.up] = 25 * Self.hour
        times[.down] = 1
        expectEqual(BarCell(times).state, .down)
    }

    @Test func `hours add up in the week's bar, and move with the time`() throws {
        var calendar = DayCalendar { _ in 0 }
        let start = 600 * Self.hour
        var frame = BarFrame(at: start, in: &calendar)
        var bars = TargetBars(frame)
        bars.add(hour: Self.summary(start, .up), in: frame)
        var running = StateTimes()
        running[.down] = 60_000
        bars.show(hour: running, day: running)
        #expect(abs((bars.bars.week.last?.times[.up] ?? 0) - Self.hour) < 100)
        #expect(abs((bars.bars.week.last?.times[.down] ?? 0) - 60_000) < 100)
        expectEqual(bars.bars.day.last?.times[.down], 60_000)

        // Six hours later, another quarter of the day has begun.
        let next = BarFrame(at: start + 6 * Self.hour, in: &calendar)
        bars.move(BarMove(from: frame, to: next))
        frame = next
        expectEqual(bars.bars.week.last, BarCell())
        #expect(abs((bars.bars.week.cells.dropLast().last?.times[.up] ?? 0) - Self.hour) < 100)
        expectEqual(bars.bars.day.cells[24 - 1 - 6].times[.down], 60_000)
        expectEqual(bars.bars.quarter.last?.times[.down], 60_000)
    }

    @Test func `a bar has the cells that were put into it, also if they repeat`() {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            // 600 equal cells are more than a run can count.
            var cells: [BarCell] = []
            for _ in 0..<Int.random(in: 0...600, using: &random) { cells.append(Self.cell(.random(in: 0...8, using: &random))) }
            var bar = Bar(cells)
            for _ in 0..<20 where !cells.isEmpty {
                let place = Int.random(in: cells.indices, using: &random)
                let cell = Self.cell(.random(in: 0...2, using: &random))
                cells[place] = cell
                if place == cells.count - 1 { bar.replaceLast(cell) } else { bar.replace(place, cell) }
            }
            #expect(bar.cells == cells && bar.count == cells.count && bar.last == cells.last)
            expectEqual(bar, Bar(cells))
            let sum = cells.reduce(StateTimes()) { $0 + $1.times }
            expectEqual(bar.times, sum)
        }
        var empty = Bar()
        empty.replaceLast(BarCell())
        empty.replace(0, BarCell())
        #expect(empty == Bar() && empty.cells.isEmpty)
        expectEqual(Bar(count: 600).cells, Array(repeating: BarCell(), count: 600))
    }

    /// A cell that is down for some seconds.
    private static func cell(_ seconds: Int64) -> BarCell {
        var times = StateTimes()
        times[.up] = hour - max(0, seconds - 5) * 1_000
        times[.down] = max(0, seconds - 5) * 1_000
        return BarCell(times)
    }

    @Test func `a time that is not shown changes nothing`() {
        var calendar = DayCalendar { _ in 0 }
        let frame = BarFrame(at: 10_000 * Self.hour, in: &calendar)
        var bars = TargetBars(frame)
        let before = bars
        bars.add(hour: Self.summary(0, .up), in: frame)
        bars.add(day: Self.summary(0, .up), in: frame)
        expectEqual(bars, before)
    }

    private static func summary(_ start: Int64, _ state: RecordedState) -> PeriodSummary {
        var summary = PeriodSummary(start..<start + hour)
        summary.times[state] = hour
        return summary
    }
}
