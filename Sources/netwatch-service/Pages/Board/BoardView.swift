import Reachability

/// The targets of one page: those that a query selects, problems first, and then by group, in a stable order.
///
/// Groups that the configuration folds are summaries, without targets of their own on the page. A query for a group, a state or a text
/// unfolds them.
struct BoardView: Sendable {
    /// A target of the page, by its number on the board, with its position.
    struct Row: Hashable, Sendable {
        var index: Int
        var position: BoardPosition
    }

    /// The targets of a group that follow each other on the page.
    struct Section: Hashable, Sendable {
        /// The group, by its number in ``BoardView/groups``; `nil` for problems.
        var group: Int?
        var rows: [Row]
    }

    /// A group with the states of its targets that the query selects.
    struct Group: Hashable, Sendable {
        /// The name; `nil` for targets without a group.
        var name: String?
        /// Whether the page shows the group as one line.
        var isFolded: Bool
        var counts = StateCounts()
    }

    /// The groups with at least one target of the query, in the order of the board; targets without a group are last.
    private(set) var groups: [Group]
    /// The states of the targets that the query selects, apart from its choice of states.
    private(set) var counts = StateCounts()
    /// The number of targets that the query selects.
    private(set) var total = 0
    /// The targets of the page.
    private(set) var sections: [Section] = []
    /// The number of targets before the page.
    private(set) var offset = 0
    /// The number of targets of all pages: ``total`` without those of folded groups.
    private(set) var listed = 0
    /// The position after which the next page begins; `nil` on the last page.
    private(set) var next: BoardPosition?
    /// The start of the page before; `nil` on the first page.
    private(set) var previous: Start?

    /// The start of a page.
    enum Start: Hashable, Sendable {
        case first
        case after(BoardPosition)
    }

    /// The targets of the page, in their order.
    var rows: [Row] { sections.flatMap(\.rows) }

    init(_ board: Board, _ query: BoardQuery) {
        var numbers: [String: Int] = [:]
        groups = []
        for group in board.groups where numbers[group.name] == nil {
            numbers[group.name] = groups.count
            groups.append(Group(name: group.name, isFolded: group.isFolded && !query.isFiltered))
        }
        let search = TextSearch(query.text)
        var selected: [(index: Int, group: Int?)] = []
        selected.reserveCapacity(board.targets.count)
        for (index, target) in board.targets.enumerated() {
            if let keys = query.keys, !keys.contains(target.key) { continue }
            if let group = query.group, (target.group ?? "") != group { continue }
            guard search.isEmpty || search.matches(target) else { continue }
            counts[target.state] += 1
            guard query.states.isEmpty || query.states.contains(target.state) else { continue }
            var number: Int?
            if let name = target.group, !name.isEmpty {
                number = numbers[name] ?? groups.count
                if number == groups.count {
                    numbers[name] = groups.count
                    groups.append(Group(name: name, isFolded: false))
                }
            }
            selected.append((index, number))
        }
        let ungrouped = groups.count
        groups.append(Group(name: nil, isFolded: false))
        total = selected.count
        for (index, group) in selected { groups[group ?? ungrouped].counts[board.targets[index].state] += 1 }
        let rows = Self.ordered(selected, ungrouped: ungrouped, groups: groups, of: board)
        listed = rows.count
        page(rows, query)
    }

    /// Returns the rows of all pages in their order. They are put into one list for each rank and group, because the configuration's
    /// order is theirs already.
    private static func ordered(
        _ selected: [(index: Int, group: Int?)], ungrouped: Int, groups: [Group], of board: Board
    ) -> [Row] {
        var problems = [[Row]](repeating: [], count: RecordedState.ranks)
        var others = [[Row]](repeating: [], count: groups.count)
        for (index, group) in selected {
            let rank = board.targets[index].state.rank
            if rank < RecordedState.ranks {
                problems[rank].append(Row(index: index, position: BoardPosition(rank: rank, group: 0, index: index)))
            } else if !groups[group ?? ungrouped].isFolded {
                let position = BoardPosition(rank: rank, group: group ?? ungrouped, index: index)
                others[group ?? ungrouped].append(Row(index: index, position: position))
            }
        }
        return (problems + others).flatMap { $0 }
    }

    private mutating func page(_ rows: [Row], _ query: BoardQuery) {
        let start = query.after.map { after in rows.firstIndex { $0.position > after } ?? rows.count } ?? 0
        let end = min(rows.count, start + query.limit)
        offset = start
        next = end < rows.count && end > 0 ? rows[end - 1].position : nil
        if start > 0 {
            let former = start - query.limit
            previous = former > 0 ? .after(rows[former - 1].position) : .first
        }
        for row in rows[start..<end] {
            let group = row.position.rank < RecordedState.ranks ? nil : row.position.group
            if sections.last?.group != group || sections.isEmpty { sections.append(Section(group: group, rows: [])) }
            sections[sections.count - 1].rows.append(row)
        }
    }
}

/// The number of targets in each state.
struct StateCounts: Hashable, Sendable {
    private var counts = [Int](repeating: 0, count: RecordedState.allCases.count)

    subscript(state: RecordedState) -> Int {
        get { counts[Int(state.rawValue)] }
        set { counts[Int(state.rawValue)] = newValue }
    }

    var total: Int { counts.reduce(0, +) }

    /// The worst state of any target; `nil` without targets.
    var worst: RecordedState? { RecordedState.bySeverity.first { self[$0] > 0 } }

    /// The states of at least one target with their numbers, the worst first.
    var present: [(state: RecordedState, count: Int)] {
        RecordedState.bySeverity.filter { self[$0] > 0 }.map { ($0, self[$0]) }
    }
}

extension Board {
    /// The states of all targets.
    var counts: StateCounts { targets.reduce(into: StateCounts()) { $0[$1.state] += 1 } }
}

/// A search for a text in the names, addresses, groups and causes of targets, without regard to case.
struct TextSearch {
    private let text: String
    private let bytes: [UInt8]

    init(_ text: String) {
        self.text = text.lowercased()
        bytes = Array(self.text.utf8)
    }

    var isEmpty: Bool { bytes.isEmpty }

    /// Returns whether any of a target's texts contains the text.
    func matches(_ target: BoardTarget) -> Bool {
        matches(target.title) || matches(target.key) || matches(target.update.endpoint.text)
            || target.group.map(matches) ?? false
            || target.update.cause.map { matches($0.name) || matches($0.detail) } ?? false
    }

    private func matches(_ other: String) -> Bool {
        var other = other
        let found = other.withUTF8 { utf8 -> Bool? in
            guard utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
            guard utf8.count >= bytes.count else { return false }
            return (0...(utf8.count - bytes.count)).contains { start in
                bytes.indices.allSatisfy { lowercase(utf8[start + $0]) == bytes[$0] }
            }
        }
        return found ?? other.lowercased().contains(text)
    }

    private func lowercase(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte + 0x20 : byte
    }
}
