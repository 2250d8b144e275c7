/// The machines of all targets. They are changed in place, and stored in pieces, so that a growing number of targets is not copied.
struct TargetSlab: Sendable {
    private static let pieceSize = 1_024

    private var pieces: [ContiguousArray<TargetMachine?>] = []
    private var free: [Int] = []
    private var slots: [TargetID: Int] = [:]

    /// The number of targets.
    var count: Int { slots.count }

    /// The numbers of all targets, in order.
    var ids: [TargetID] { slots.keys.sorted() }

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
        guard let slot = slots.removeValue(forKey: id) else { return }
        self[slot] = nil
        free.append(slot)
    }
}
