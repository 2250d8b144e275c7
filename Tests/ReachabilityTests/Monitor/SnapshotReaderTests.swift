import Testing

@testable import Reachability

@Suite struct SnapshotReaderTests {
    @Test func `changes that nobody takes gather up to a limit, and a full snapshot is asked for again`() {
        let changes = [Kernel.Change](repeating: .linkRemoved(1), count: SnapshotReader.limit / 2)
        let half = Kernel.SnapshotUpdate.changes(changes)
        #expect(half.following(half) == .changes(changes + changes))
        #expect(half.following(.changes(changes + [.linkRemoved(2)])) == nil)
        #expect(half.following(.full(Kernel.Snapshot())) == nil)
    }
}
