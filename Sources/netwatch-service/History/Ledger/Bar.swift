/// The cells of a bar, the oldest first.
///
/// Equal neighbors are stored once, and the last cell on its own: a board of 10,000 targets has 1,420,000 cells, most of them equal, and
/// only the last ones change between two boards.
struct Bar: Hashable, Sendable {
    private struct Run: Hashable, Sendable {
        var cell: BarCell
        var count: UInt8
    }

    /// All cells but the last one.
    private var runs: [Run] = []
    /// The last cell; `nil` for a bar without cells.
    private(set) var last: BarCell?

    /// Creates a bar without cells.
    init() {}

    init(_ cells: some Collection<BarCell>) {
        for cell in cells { append(cell) }
    }

    /// Creates a bar of empty cells.
    init(count: Int) { self.init(repeatElement(BarCell(), count: count)) }

    /// The number of cells.
    var count: Int { runs.reduce(last == nil ? 0 : 1) { $0 + Int($1.count) } }

    /// All cells.
    var cells: [BarCell] { runs.flatMap { repeatElement($0.cell, count: Int($0.count)) } + (last.map { [$0] } ?? []) }

    /// The times in each state of all cells.
    var times: StateTimes {
        runs.reduce(last?.times ?? StateTimes()) { $0 + $1.cell.times * Int64($1.count) }
    }

    private mutating func append(_ cell: BarCell) {
        defer { last = cell }
        guard let last else { return }
        if let run = runs.last, run.cell == last, run.count < .max {
            runs[runs.count - 1].count += 1
        } else {
            runs.append(Run(cell: last, count: 1))
        }
    }

    /// Replaces the last cell of a bar that has cells.
    mutating func replaceLast(_ cell: BarCell) { if last != nil { last = cell } }

    /// Replaces a cell. A place that the bar does not have changes nothing.
    mutating func replace(_ place: Int, _ cell: BarCell) {
        var cells = cells
        guard cells.indices.contains(place), cells[place] != cell else { return }
        cells[place] = cell
        self = Bar(cells)
    }
}
