import Dispatch
import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import HTTPSession

@Suite struct FileSinkTests {
    private let folder: ScratchDirectory

    init() throws { folder = try ScratchDirectory() }

    /// Passes pieces to the sink until it accepts no more or all are passed. - Returns: the number of bytes that the sink has
    /// accepted.
    private func give(_ body: [UInt8], from start: Int = 0, to sink: FileSink, piece: Int) -> Int {
        var done = start
        while done < body.count {
            let end = min(body.count, done + piece)
            guard case .accepted = body[done..<end].withUnsafeBytes({ sink.receive($0) }) else { break }
            done = end
        }
        return done
    }

    @Test(arguments: [1_000, 16 << 10, 300_000]) func `a body in pieces of any size is written to the file completely`(piece: Int)
        async throws
    {
        let worker = try Worker(name: "test")
        let hasRoom = AsyncStream<Void>.makeStream()
        let sink = FileSink(DownloadDestination(folder.url("file")), worker: worker) { hasRoom.continuation.yield() }
        let body = (0..<(3 << 20) + 7).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
        sink.begin(expected: nil)
        var rooms = hasRoom.stream.makeAsyncIterator()
        var done = give(body, to: sink, piece: piece)
        while done < body.count {
            _ = await rooms.next()
            done = give(body, from: done, to: sink, piece: piece)
        }
        let received = await withCheckedContinuation { continuation in sink.finish { continuation.resume(returning: $0) } }
        try expectEqual(received.get().file, folder.url("file"))
        try expectEqual([UInt8](Data(contentsOf: folder.url("file"))), body)
    }

    @Test func `later downloads use the memory of written chunks, of which a few are kept`() async throws {
        let worker = try Worker(name: "test")
        let chunks = SpareChunks()
        let sink = FileSink(DownloadDestination(folder.url("file")), worker: worker, chunks: chunks) {}
        sink.begin(expected: nil)
        expectEqual(give([UInt8](repeating: 1, count: 3 * FileSink.chunkSize), to: sink, piece: 16 << 10), 3 * FileSink.chunkSize)
        _ = try await withCheckedContinuation { continuation in sink.finish { continuation.resume(returning: $0) } }.get()
        let spare = chunks.take()
        #expect(spare.isEmpty && spare.capacity >= FileSink.chunkSize)
        while chunks.take().capacity > 0 {}
        for _ in 0..<100 { chunks.give([UInt8](unsafeUninitializedCapacity: FileSink.chunkSize) { $1 = 0 }) }
        for _ in 0..<SpareChunks.maximumCount { #expect(chunks.take().capacity >= FileSink.chunkSize) }
        expectEqual(chunks.take().capacity, 0)
    }

    @Test func `a released file sink leaves the removal of its partial file to its worker`() throws {
        let worker = try Worker(name: "test")
        let (mayGoOn, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        var sink: FileSink? = FileSink(DownloadDestination(folder.url("file")), worker: worker) {}
        sink?.begin(expected: nil)
        worker.run {
            isDone.signal()
            mayGoOn.wait()
        }
        isDone.wait()
        sink = nil
        expectEqual(folder.names.count, 1)
        mayGoOn.signal()
        worker.run { isDone.signal() }
        isDone.wait()
        expectEmpty(folder.names)
    }

    @Test func `a file sink whose worker is busy accepts a bounded number of bytes, and more later`() async throws {
        let worker = try Worker(name: "test")
        let isBusy = DispatchSemaphore(value: 0)
        worker.run { isBusy.wait() }
        let hasRoom = AsyncStream<Void>.makeStream()
        let sink = FileSink(DownloadDestination(folder.url("file")), worker: worker) { hasRoom.continuation.yield() }
        let body = [UInt8](repeating: 1, count: 4 << 20)
        sink.begin(expected: Int64(body.count))
        let taken = give(body, to: sink, piece: 16 << 10)
        expectEqual(taken, (FileSink.maximumWaiting + 1) * FileSink.chunkSize - 16 << 10)
        isBusy.signal()
        var rooms = hasRoom.stream.makeAsyncIterator()
        _ = await rooms.next()
        #expect(give(body, from: taken, to: sink, piece: 16 << 10) > taken)
        await withCheckedContinuation { continuation in
            if sink.discard(HTTPSessionError(.cancelled, ""), { _ in continuation.resume() }) { continuation.resume() }
        }
        expectEmpty(folder.names)
    }
}
