internal import FoundationEssentials

/// The count and the destination of a response body's bytes.
extension TaskMachine {
    /// The destination of received bytes.
    enum ByteDestination: Sendable {
        /// The destination is not decided yet: the transfer pauses.
        case undecided
        /// The bytes go to ``TaskMachine/buffer(_:)``.
        case memory
        case sink
        /// The bytes are rejected with this error.
        case refused(HTTPSessionError)
    }

    /// The destination of the next `count` bytes of the body. `arrived` returns the bytes received so far, before decompression.
    mutating func destination(of count: Int, now: Int64, arrived: () -> Int64?) -> ByteDestination {
        self.now = now
        noteReceived()
        switch attempt.body {
        case .undecided: return .undecided
        case .buffered, .errorBody: return .memory
        case .streamed: break
        }
        let total = progress.bytesReceived + Int64(count)
        if attempt.isPartialContent, let completeLength = resumption?.total, total > completeLength {
            return .refused(HTTPSessionError(.badServerResponse, "the server sent more than the remaining range"))
        }
        // The check also covers a request that asks for no compression: a server may send Transfer-Encoding (RFC 9112 section
        // 6.1) unasked.
        let fresh = attempt.isPartialContent ? total - attempt.receivedBefore : total
        let maximumRatio = rules.session.configuration.maximumDecompressionRatio
        if fresh > 8 << 20, let arrived = arrived(), fresh / Int64(maximumRatio) > max(arrived, 1) {
            return .refused(
                HTTPSessionError(
                    .responseTooLarge, "the response decompresses to more than \(maximumRatio) times its size"))
        }
        return .sink
    }

    /// The sink has accepted `count` bytes.
    mutating func sinkAccepted(_ count: Int) {
        progress.bytesReceived += Int64(count)
        publishProgress()
    }

    /// The sink accepts no more bytes for now.
    mutating func receiverBecameFull() { _ = stateMachine.handle(.receiverFull, now: now) }

    /// Buffers bytes of a response that is not the result.
    mutating func buffer(_ bytes: UnsafeRawBufferPointer) -> Intake {
        switch attempt.body {
        case .undecided, .streamed: return .taken
        case .buffered(var data):
            guard data.count + bytes.count <= Attempt.maximumBufferedLength else {
                // The remaining bytes of this response are not needed; the transaction after it is.
                attempt.isBodyRejected = true
                return .abort(HTTPSessionError(.transferFailed, "the body of an intermediate response is too long"))
            }
            attempt.body = .undecided
            data.append(contentsOf: bytes)
            attempt.body = .buffered(data)
            return .taken
        case .errorBody(var data):
            attempt.body = .errorBody(Data())
            data.append(contentsOf: bytes.prefix(Attempt.maximumErrorBodyLength - data.count))
            attempt.body = .errorBody(data)
            guard data.count < Attempt.maximumErrorBodyLength else {
                attempt.isBodyRejected = true
                return .abort(unacceptable(data))
            }
            return .taken
        }
    }

    /// Something was sent.
    mutating func noteActivity() { _ = stateMachine.handle(.activity, now: now) }

    /// Something was received, or there is another reason for the server's silence: the request timeout restarts.
    mutating func noteReceived() { _ = stateMachine.handle(.silenceEnded, now: now) }
}
