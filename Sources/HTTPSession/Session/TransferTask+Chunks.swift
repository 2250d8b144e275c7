public import FoundationEssentials

extension TransferTask {
    /// The body of a stream task, in chunks as they arrive.
    ///
    /// Iterators of one task share its chunks. If the last iterator is released before the end of the body, for example by `break` in a loop,
    /// the task is canceled. If a program releases its last reference to a stream task, the task is canceled within about a second. Other kinds
    /// of tasks throw ``HTTPSessionError/Code/misuse``.
    public var chunks: Chunks { Chunks(task: self) }

    /// The chunks of a body, of at least one byte each.
    public struct Chunks: AsyncSequence, Sendable {
        /// A chunk.
        public typealias Element = Data
        /// The error that ended the body.
        public typealias Failure = HTTPSessionError
        let task: TransferTask

        /// Creates an iterator, which continues after the chunks that other iterators have read.
        public func makeAsyncIterator() -> Iterator { Iterator(reader: ChunkReader(task)) }

        /// An iterator of a stream's chunks. Its copies count as one iterator.
        public struct Iterator: AsyncIteratorProtocol {
            let reader: ChunkReader

            /// The next chunk; `nil` at the end. If the reading Swift task is canceled, the `TransferTask` is canceled too.
            public mutating func next() async throws(HTTPSessionError) -> Data? {
                try await next(isolation: nil)
            }

            /// The next chunk, delivered on the given actor; `nil` at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPSessionError) -> Data? {
                let task = reader.task
                guard let buffer = task.chunkBuffer else {
                    throw HTTPSessionError(.misuse, "only stream tasks have chunks", context: task.context)
                }
                let result: Result<Data?, HTTPSessionError> = await withTaskCancellationHandler {
                    do throws(HTTPSessionError) { return .success(try await buffer.next()) } catch { return .failure(error) }
                } onCancel: { [task] in
                    task.cancel()
                }
                return try result.get()
            }
        }
    }
}

/// The state that copies of an iterator share. Its release cancels the task, unless the body has ended.
final class ChunkReader: Sendable {
    let task: TransferTask

    init(_ task: TransferTask) {
        self.task = task
        task.chunkBuffer?.addReader()
    }

    deinit {
        if task.chunkBuffer?.removeReader() == true { task.cancel() }
    }
}
