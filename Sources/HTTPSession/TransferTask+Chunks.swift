public import Foundation

extension TransferTask {
    /// A stream task's body, piece by piece. One reader; a second shares the pieces with the first. Whoever stops reading and drops the
    /// task leaves it paused until its resource timeout: cancel it. Other kinds of task give the error
    /// ``HTTPSessionError/Code/misuse``.
    public var chunks: Chunks { Chunks(task: self) }

    /// The pieces of a body, at least a byte each.
    public struct Chunks: AsyncSequence, Sendable {
        /// A piece.
        public typealias Element = Data
        /// Why there are no more.
        public typealias Failure = HTTPSessionError
        let task: TransferTask

        /// Goes on where the last reader stopped.
        public func makeAsyncIterator() -> Iterator { Iterator(task: task) }

        /// A reader.
        public struct Iterator: AsyncIteratorProtocol {
            let task: TransferTask

            /// The next piece; `nil` at the end. Cancelling the reading Task cancels the transfer.
            public mutating func next() async throws(HTTPSessionError) -> Data? {
                try await next(isolation: nil)
            }

            /// The same, wherever the caller runs.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPSessionError) -> Data? {
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
