import Expectations
import Reachability
import Testing

@testable import netwatch_service

@Suite struct BoardViewTests {
    private static func target(_ key: String, _ state: StatusName = .up, group: String? = nil) -> BoardTarget {
        let cause: Cause? = state == .up || state == .unknown ? nil : PageSamples.refused
        return PageSamples.target(
            key, group: group, PageSamples.update("192.0.2.9:\(1_000 + abs(key.hashValue % 1_000))", state, cause))
    }

    private static let board = PageSamples.board(
        [
            target("a", group: "Web"), target("b", .down), target("c", group: "Plant"), target("d", .degraded, group: "Web"),
            target("e"),
            target("f", .unreachable, group: "Plant"), target("g", .down, group: "Web"), target("h", .unknown, group: "Web"),
        ], groups: [.init(name: "Plant"), .init(name: "Empty")])

    private func keys(_ board: Board, _ query: String = "") -> [String] {
        BoardView(board, BoardQuery(QueryParameters(query))).rows.map { board.targets[$0.index].key }
    }

    @Test func `problems are first, the worst before others, then the groups in their order`() {
        expectEqual(keys(Self.board), ["b", "g", "f", "d", "c", "a", "h", "e"])
        let view = BoardView(Self.board, BoardQuery())
        expectEqual(view.groups.map(\.name), ["Plant", "Empty", "Web", nil])
        expectEqual(view.sections.map(\.group), [nil, 0, 2, 3])
    }

    @Test func `pages of any size have each target once, forwards and backwards`() {
        for limit in 1...9 {
            var (query, seen, starts) = (BoardQuery(), [Int](), [BoardPosition?.none])
            query.limit = limit
            while true {
                let view = BoardView(Self.board, query)
                seen += view.rows.map(\.index)
                #expect(view.rows.count <= limit)
                guard let next = view.next else { break }
                query.after = next
                let following = BoardView(Self.board, query)
                let start = starts[starts.count - 1]
                expectEqual(following.previous, (start.map { .after($0) } ?? .first), "limit \(limit)")
                starts.append(next)
            }
            expectEqual(seen.map { Self.board.targets[$0].key }, keys(Self.board), "limit \(limit)")
        }
    }

    @Test func `a page continues at its position if targets have changed`() {
        var board = Self.board
        let first = BoardView(board, BoardQuery(QueryParameters("limit=5")))
        expectEqual(first.next, BoardPosition(rank: 3, group: 0, index: 2))
        // The target at the position goes down: it moves to the problems, and the next page begins where it was.
        board.targets[2].update = PageSamples.update("192.0.2.9:80", .down, PageSamples.refused)
        expectEqual(keys(board, "limit=5&after=3.0.2"), ["a", "h", "e"])
        expectEqual(keys(board, "after=999.0.0"), [])
        expectEqual(BoardView(board, BoardQuery(QueryParameters("after=999.0.0"))).previous, .first)
    }

    @Test func `a query selects by group, state and text`() {
        expectEqual(keys(Self.board, "group=Web"), ["g", "d", "a", "h"])
        expectEqual(keys(Self.board, "group=&q=PLANT&status="), ["f", "c"])
        expectEqual(keys(Self.board, "group=none"), [])
        expectEqual(keys(Self.board, "status=down"), ["b", "g"])
        expectEqual(keys(Self.board, "status=up,unknown&group=Web"), ["a", "h"])
        expectEqual(keys(Self.board, "q=PLANT"), ["f", "c"])
        expectEqual(keys(Self.board, "q=tcp/refused&status=degraded"), ["d"])
        expectEqual(keys(Self.board, "q=%F0%9F%92%A9"), [])
    }

    @Test func `counts are those of the query without its choice of states`() {
        let view = BoardView(Self.board, BoardQuery(QueryParameters("group=Web&status=down")))
        expectEqual(view.counts.present.map(\.count), [1, 1, 1, 1])
        expectEqual(view.total, 1)
        expectEqual(view.counts.worst, .down)
    }

    @Test func `a folded group is a summary, and its problems are listed`() {
        var board = Self.board
        board.groups = [.init(name: "Plant", isFolded: true), .init(name: "Web", isFolded: true)]
        expectEqual(keys(board), ["b", "g", "f", "d", "e"])
        let view = BoardView(board, BoardQuery())
        expectEqual(view.total, 8)
        expectEqual(view.listed, 5)
        expectEqual(view.groups[0].counts.total, 2)
        expectEqual(keys(board, "group=Plant"), ["f", "c"])
    }

    @Test func `maintenance is no problem`() {
        var board = Self.board
        board.targets[1].isInMaintenance = true
        expectEqual(keys(board).first, "g")
        expectEqual(board.counts[.maintenance], 1)
    }

    @Test func `a text is found without regard to case, also beyond ASCII`() {
        let target = PageSamples.target("x", title: "Büro ÄRZTE", PageSamples.update("192.0.2.9:80"))
        #expect(TextSearch("ärzte").matches(target))
        #expect(TextSearch("192.0.2.9:80").matches(target))
        #expect(!TextSearch("büros").matches(target))
        #expect(!TextSearch(String(repeating: "x", count: 500)).matches(target))
    }

    @Test func `a cell shows the part of its time that was observed, and the time before the history is none`() {
        var target = PageSamples.target("x", PageSamples.update("192.0.2.9:80"))
        func cell(_ hours: (RecordedState, Int64)...) -> BarCell {
            var times = StateTimes()
            for (state, count) in hours { times[state] = count * PageSamples.hour }
            return BarCell(times)
        }
        let cells = PageSamples.cells.quarter
        target.bars.quarter = Bar(
            cells.indices.map { place in
                switch place {
                case ..<80: cell()
                // The service was started at 22:00, did not run for a day and a half, and has been restarted once.
                case 80: cell((.up, 2))
                case 82: cell((.notRecorded, 24))
                case 83: cell((.unknown, 1), (.up, 11), (.notRecorded, 12))
                case 84: cell((.up, 23), (.notRecorded, 1))
                case 85: cell((.down, 1), (.notRecorded, 23))
                default: cell((.up, 24))
                }
            })
        let segments = BarSegment.segments(of: target.bars.quarter, in: cells, now: PageSamples.now)
        expectEqual(segments.map(\.state), [.notRecorded, .up, .up, .notRecorded, .up, .up, .down, .up])
        expectEqual(segments.map(\.cells), [80, 1, 1, 1, 1, 1, 1, 4])
        expectEqual(segments.map(\.observedTenths), [10, 1, 10, 10, 5, 10, 1, 10])
        expectEqual(segments[1].times[.notRecorded], 22 * PageSamples.hour)
        // The running hour has no future.
        var running = StateTimes()
        running[.up] = 187_000
        let hour = PageSamples.now - 187_000..<PageSamples.now + PageSamples.hour
        expectEqual(
            BarSegment.segments(of: Bar([BarCell(running)]), in: [hour], now: PageSamples.now).map(\.observedTenths), [10])
        let query = BoardQuery(QueryParameters("span=90d"))
        let page = PageSamples.text(
            StatusPage.pieces(board: PageSamples.board([target]), query: query, now: PageSamples.moment()).rendered())
        #expect(page.contains("<a class=\"u w1 p1\" href") && page.contains(": up 2 h, not recorded 22 h\""))
        #expect(page.contains("<a class=\"d w1 p1\" href"))
    }

    @Test func `neighboring cells of one state are one segment`() {
        let target = PageSamples.target("x", PageSamples.update("192.0.2.9:80"), shape: { 3...5 ~= $0 ? (.down, 0.25) : nil })
        let segments = BarSegment.segments(of: target.bars.day, in: PageSamples.cells.day, now: PageSamples.now)
        expectEqual(segments.map(\.state), [.up, .down, .up])
        expectEqual(segments.map(\.cells).reduce(0, +), 24)
        expectEqual(segments.first?.period.upperBound, segments.dropFirst().first?.period.lowerBound)
        expectEqual(BarSegment.segments(of: Bar(), in: PageSamples.cells.day, now: PageSamples.now).map(\.state), [.notRecorded])
        expectEmpty(BarSegment.segments(of: Bar(), in: [], now: PageSamples.now))
    }
}
