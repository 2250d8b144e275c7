/// The targets that wait for a time, ordered by that time: a binary heap in which each target has at most one entry.
///
/// The next time is known at once, and a changed time costs a number of steps that grows with the logarithm of the number of
/// targets. Targets with equal times are ordered by their slots (``TargetSlab``). Additions and removals are recorded, so a replay
/// gives each target the same slot, and handles the targets in the recorded order.
struct DueHeap: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var due: Int64
        var slot: Int32

        func precedes(_ other: Entry) -> Bool { due != other.due ? due < other.due : slot < other.slot }
    }

    private var entries: [Entry] = []
    // The place of each slot's entry; -1 without an entry.
    private var places: [Int32] = []

    /// The earliest time; `nil` if no target waits.
    var next: Int64? { entries.first?.due }

    /// The number of waiting targets.
    var count: Int { entries.count }

    /// Returns the time for which a slot waits; `nil` for none.
    func due(of slot: Int) -> Int64? {
        guard slot < places.count, places[slot] >= 0 else { return nil }
        return entries[Int(places[slot])].due
    }

    /// Sets the time of a slot; `nil` removes it.
    mutating func set(_ slot: Int, due: Int64?) {
        while places.count <= slot { places.append(-1) }
        let place = Int(places[slot])
        guard let due else {
            if place >= 0 { remove(at: place) }
            return
        }
        if place < 0 {
            entries.append(Entry(due: due, slot: Int32(slot)))
            places[slot] = Int32(entries.count - 1)
            rise(entries.count - 1)
        } else if entries[place].due != due {
            let isEarlier = due < entries[place].due
            entries[place].due = due
            if isEarlier { rise(place) } else { sink(place) }
        }
    }

    /// Removes and returns the slot with the earliest time if that time is not after `now`.
    mutating func takeDue(at now: Int64) -> Int? {
        guard let first = entries.first, first.due <= now else { return nil }
        remove(at: 0)
        return Int(first.slot)
    }

    private mutating func remove(at place: Int) {
        places[Int(entries[place].slot)] = -1
        let last = entries.removeLast()
        guard place < entries.count else { return }
        entries[place] = last
        places[Int(last.slot)] = Int32(place)
        rise(place)
        sink(Int(places[Int(last.slot)]))
    }

    private mutating func rise(_ start: Int) {
        var place = start
        let entry = entries[place]
        while place > 0 {
            let parent = (place - 1) / 2
            guard entry.precedes(entries[parent]) else { break }
            move(entries[parent], to: place)
            place = parent
        }
        move(entry, to: place)
    }

    private mutating func sink(_ start: Int) {
        var place = start
        let entry = entries[place]
        while 2 * place + 1 < entries.count {
            var child = 2 * place + 1
            if child + 1 < entries.count, entries[child + 1].precedes(entries[child]) { child += 1 }
            guard entries[child].precedes(entry) else { break }
            move(entries[child], to: place)
            place = child
        }
        move(entry, to: place)
    }

    private mutating func move(_ entry: Entry, to place: Int) {
        entries[place] = entry
        places[Int(entry.slot)] = Int32(place)
    }
}
