import Expectations
import Foundation
import Testing

@testable import HTTPSession

/// The buffer between a session's loop and the readers of a stream.
@Suite(.timeLimit(.minutes(20))) struct ChunkBufferTests {
    private func read(_ buffer: ChunkBuffer) async throws -> Int {
        var count = 0
        while let piece = try await buffer.next() { count += piece.count }
        return count
    }

    @Test func `two readers that wait for the same stream use no CPU and share its chunks`() async throws {
        let buffer = ChunkBuffer {}
        async let one = read(buffer)
        async let other = read(buffer)
        while buffer.waitingReaders < 2 { await Task.yield() }
        for _ in 0..<1_000 {
            await Task.yield()
            // A reader that wakes the other one would not be waiting at this moment.
            expectEqual(buffer.waitingReaders, 2)
        }
        for _ in 0..<3 { _ = [UInt8](repeating: 1, count: 3).withUnsafeBytes { buffer.put($0) } }
        buffer.finish(nil)
        let counts = try await (one, other)
        expectEqual(counts.0 + counts.1, 9)
        expectEqual(buffer.waitingReaders, 0)
    }
}
