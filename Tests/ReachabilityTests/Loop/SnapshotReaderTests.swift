import Expectations
import Testing

@testable import Reachability

@Suite struct SnapshotReaderTests {
    @Test func `snapshot changes that are not read are collected up to a limit, then a full snapshot is requested`() {
        let changes = [Kernel.Change](repeating: .linkRemoved(1), count: SnapshotReader.limit / 2)
        let half = Kernel.SnapshotUpdate.changes(changes)
        expectEqual(half.following(half), .changes(changes + changes))
        expectNil(half.following(.changes(changes + [.linkRemoved(2)])))
        expectNil(half.following(.full(Kernel.Snapshot())))
    }
}
