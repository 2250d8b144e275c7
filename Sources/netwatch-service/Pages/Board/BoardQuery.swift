/// The part of the board that a page or a document shows.
struct BoardQuery: Hashable, Sendable {
    /// The number of targets of a page unless the query says otherwise, and the maximum.
    static let pageSize = 100
    static let maximumLimit = 1_000
    /// The maximum number of characters of a searched text.
    static let textLimit = 200

    /// The keys of the targets; `nil` for all. Pages have no such parameter.
    var keys: Set<String>?
    /// The group; `nil` for all targets.
    var group: String?
    /// The states; empty for all.
    var states: Set<RecordedState> = []
    /// The text that a target's name, address, group or cause contains; empty for all.
    var text = ""
    /// The position after which the page begins; `nil` for the first page.
    var after: BoardPosition?
    /// The maximum number of targets.
    var limit = pageSize
    /// The span of the bars.
    var span = BarSpan.day
    /// Whether only the changing parts of the page are wanted, for its script.
    var isPart = false
    /// The first parameter that is not valid; it is ignored. `nil` if all are valid.
    var problem: QueryProblem?

    /// Creates the query for the first page of all targets.
    init() {}

    /// Creates the query of a URL. Parameters that are not known are ignored without a problem.
    init(_ parameters: QueryParameters) {
        problem = parameters.problem
        func note(_ parameter: String, _ detail: String) {
            if problem == nil { problem = QueryProblem(parameter: parameter, detail: detail) }
        }
        if let text = parameters["q"] {
            self.text = String(String.UnicodeScalarView(text.unicodeScalars.prefix(Self.textLimit))).trimmed
            if text.unicodeScalars.count > Self.textLimit { note("q", "the text is longer than \(Self.textLimit) characters") }
        }
        // The form of the page sends an empty group for all of them.
        if let name = parameters["group"], !name.isEmpty { group = name }
        for name in (parameters["status"] ?? "").split(separator: ",").prefix(16) {
            let state = RecordedState.allCases.first { $0 != .notRecorded && $0.name == name }
            if let state {
                states.insert(state)
            } else {
                note("status", "the states are up, degraded, down, unreachable, unknown and maintenance")
            }
        }
        if let text = parameters["after"], !text.isEmpty {
            after = BoardPosition(text)
            if after == nil { note("after", "not a position of a page") }
        }
        if let text = parameters["limit"], !text.isEmpty {
            if let number = Int(text), 1...Self.maximumLimit ~= number {
                limit = number
            } else {
                note("limit", "write a number from 1 to \(Self.maximumLimit)")
            }
        }
        if let text = parameters["span"], !text.isEmpty {
            if let span = BarSpan(rawValue: text) {
                self.span = span
            } else {
                note("span", BarSpan.form)
            }
        }
        isPart = parameters["part"] == "1"
    }

    /// Whether the query selects less than all targets.
    var isFiltered: Bool { group != nil || !states.isEmpty || !text.isEmpty }

    /// The states of the query in the order of their severity, joined by commas; `nil` for all.
    var statesText: String? {
        states.isEmpty ? nil : RecordedState.bySeverity.filter(states.contains).map(\.name).joined(separator: ",")
    }
}

/// The position of a target in the order of the page: problems first, then groups, then the order of the configuration.
///
/// A page that continues after a position is right even if the target at that position has changed or is gone.
struct BoardPosition: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The severity of a problem, 0 for the worst; ``RecordedState/ranks`` for a target without a problem.
    var rank: Int
    /// The number of the group; 0 for problems, which are not grouped.
    var group: Int
    /// The number of the target in the configuration.
    var index: Int

    init(rank: Int, group: Int, index: Int) { (self.rank, self.group, self.index) = (rank, group, index) }

    /// Creates a position from its text: three numbers with dots.
    init?(_ text: some StringProtocol) {
        let numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { part in
            part.utf8.allSatisfy { 0x30...0x39 ~= $0 } ? Int(part) : nil
        }
        guard numbers.count == 3, let rank = numbers[0], let group = numbers[1], let index = numbers[2] else { return nil }
        self.init(rank: rank, group: group, index: index)
    }

    var description: String { "\(rank).\(group).\(index)" }

    static func < (first: Self, second: Self) -> Bool {
        (first.rank, first.group, first.index) < (second.rank, second.group, second.index)
    }
}

extension RecordedState {
    /// The states of targets, the worst first.
    static let bySeverity: [RecordedState] = [.down, .unreachable, .degraded, .unknown, .maintenance, .up]

    /// The states that are problems, the worst first.
    static let problems: [RecordedState] = [.down, .unreachable, .degraded]

    /// Whether the state is a problem, which the page lists first.
    var isProblem: Bool { self == .down || self == .unreachable || self == .degraded }

    /// The number of kinds of problems: the rank of targets without one.
    static let ranks = 3

    /// The place among the problems, 0 for the worst.
    var rank: Int {
        switch self {
        case .down: 0
        case .unreachable: 1
        case .degraded: 2
        case .unknown, .up, .maintenance, .notRecorded: Self.ranks
        }
    }
}

extension String {
    /// The text without spaces at its ends.
    fileprivate var trimmed: String {
        let start = drop { $0.isWhitespace }
        guard let end = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...end])
    }
}
