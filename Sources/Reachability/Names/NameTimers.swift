/// Times at which something is due, the earliest first: a binary heap. Entries are not removed early; their owner ignores those
/// that no longer matter.
struct NameTimers<Item: Hashable & Sendable>: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        let time: Int64
        let item: Item
    }

    private var entries: [Entry] = []

    /// The earliest time.
    var first: Int64? { entries.first?.time }

    mutating func add(_ item: Item, at time: Int64) {
        entries.append(Entry(time: time, item: item))
        var index = entries.count - 1
        while index > 0, entries[index].time < entries[(index - 1) / 2].time {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Removes the earliest entry if it is due.
    mutating func removeFirst(dueAt now: Int64) -> Item? {
        guard let first = entries.first, first.time <= now else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        var index = 0
        while true {
            var child = 2 * index + 1
            if child + 1 < entries.count, entries[child + 1].time < entries[child].time { child += 1 }
            guard child < entries.count, entries[child].time < entries[index].time else { return first.item }
            entries.swapAt(index, child)
            index = child
        }
    }
}
