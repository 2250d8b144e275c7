import EventLoop

/// The latest board. The keeper publishes it, and pages and documents read it.
final class BoardSource: Sendable {
    private let board = Locked<Board?>(nil)

    /// Replaces the board.
    func publish(_ board: Board) {
        // The former board is released after the lock, because it may have 10,000 targets.
        let former = self.board.withLock { present in
            let former = present
            present = board
            return former
        }
        withExtendedLifetime(former) {}
    }

    /// Returns the latest board; `nil` before the first one.
    func current() -> Board? { board.withLock { $0 } }
}
