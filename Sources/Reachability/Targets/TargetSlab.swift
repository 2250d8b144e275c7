/// The machines of all targets. They are changed in place, and stored in pieces, so that a growing number of targets is not copied.
struct TargetSlab: Sendable {
    private static let pieceSize = 1_024

    private var pieces: [ContiguousArray<TargetMachine?>] = []
    private var free: [Int] = []
    private var slots = SlotIndex()

    /// The number of targets.
    var count: Int { slots.count }

    /// The numbers of all targets, in order.
    var ids: [TargetID] { slots.ids }

    /// Returns the slot of a target; `nil` if there is none.
    func slot(of id: TargetID) -> Int? { slots[id] }

    /// Accesses the machine in a slot.
    subscript(slot: Int) -> TargetMachine? {
        _read { yield pieces[slot / Self.pieceSize][slot % Self.pieceSize] }
        _modify { yield &pieces[slot / Self.pieceSize][slot % Self.pieceSize] }
    }

    /// Adds a machine.
    ///
    /// - Returns: its slot.
    mutating func add(_ machine: TargetMachine) -> Int {
        let slot: Int
        if let reused = free.popLast() {
            slot = reused
            self[slot] = machine
        } else {
            slot = slots.count
            if slot % Self.pieceSize == 0 {
                pieces.append([])
                pieces[pieces.count - 1].reserveCapacity(Self.pieceSize)
            }
            pieces[slot / Self.pieceSize].append(machine)
        }
        slots[machine.id] = slot
        return slot
    }

    /// Removes a target.
    mutating func remove(_ id: TargetID) {
        guard let slot = slots[id] else { return }
        slots[id] = nil
        self[slot] = nil
        free.append(slot)
    }
}

/// The slots of targets. The numbers of most targets are small, because they are counted from 0: these have a place in an array,
/// which takes a quarter of the memory of a dictionary. A recording may contain any number.
private struct SlotIndex: Sendable {
    private static let none: Int32 = -1

    private var dense: [Int32] = []
    private var sparse: [TargetID: Int32] = [:]
    private(set) var count = 0

    /// The numbers of all targets, in order.
    var ids: [TargetID] {
        dense.indices.lazy.filter { dense[$0] != Self.none }.map { TargetID($0) } + sparse.keys.sorted()
    }

    subscript(id: TargetID) -> Int? {
        get {
            if dense.indices.contains(id.number) { return dense[id.number] == Self.none ? nil : Int(dense[id.number]) }
            return sparse.isEmpty ? nil : sparse[id].map { Int($0) }
        }
        set {
            let (old, new) = (self[id], newValue.map { Int32($0) })
            count += (new == nil ? 0 : 1) - (old == nil ? 0 : 1)
            if dense.indices.contains(id.number) {
                dense[id.number] = new ?? Self.none
            } else if id.number == dense.count, dense.count < 2 * count + 1_024, let new {
                dense.append(new)
            } else {
                // Also numbers beyond many that are no longer used: a monitor may add and remove targets for years.
                sparse[id] = new
            }
        }
    }
}
