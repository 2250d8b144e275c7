public import FoundationEssentials

extension TransferTask {
    /// The body of a stream task, piece by piece. Two iterators share the pieces. When the last iterator is released before the end of the body,
    /// as by `break` in a loop, the task is canceled; so is, within about a second, a stream task that nobody refers to. Tasks of other
    /// kinds give the error ``HTTPSessionError/Code/misuse``.
    public var chunks: Chunks { Chunks(task: self) }

    /// The pieces of a body, at least a byte each.
    public struct Chunks: AsyncSequence, Sendable {
        /// A piece.
        public typealias Element = Data
        /// Why there are no more.
        public typealias Failure = HTTPSessionError
        let task: TransferTask

        /// An iterator, which continues where the last one stopped.
        public func makeAsyncIterator() -> Iterator { Iterator(reader: ChunkReader(task)) }

        /// An iterator of a stream's pieces; its copies count as one.
        public struct Iterator: AsyncIteratorProtocol {
            let reader: ChunkReader

            /// The next piece; `nil` at the end. Cancelling the reading Task cancels the transfer.
            public mutating func next() async throws(HTTPSessionError) -> Data? {
                try await next(isolation: nil)
            }

            /// The same, wherever the caller runs.
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

/// What the copies of an iterator share. The release of the last one cancels the task, unless its body has ended.
final class ChunkReader: Sendable {
    let task: TransferTask

    init(_ task: TransferTask) {
        self.task = task
        task.chunkBuffer?.readerBegins()
    }

    deinit {
        if task.chunkBuffer?.readerEnds() == true { task.cancel() }
    }
}
