internal import FoundationEssentials

/// The bytes of a response's body, counted.
extension TransferMachine {
    /// Where bytes go.
    enum Place: Sendable {
        /// Nobody knows yet: the transfer pauses.
        case nowhere
        /// To ``TransferMachine/hold(_:)``.
        case memory
        case sink
        /// Nowhere: the response is not what it should be.
        case refused(HTTPSessionError)
    }

    /// Where the next `count` bytes of the body go. `arrived`: how many have been received of it, before decompression.
    mutating func place(of count: Int, now: Int64, arrived: () -> Int64?) -> Place {
        self.now = now
        noteActivity()
        switch attempt.body {
        case .undecided: return .nowhere
        case .held, .explained: return .memory
        case .kept: break
        }
        let total = progress.received + Int64(count)
        if attempt.isRest, let whole = resumption?.total, total > whole {
            return .refused(HTTPSessionError(.badServerResponse, "the server sent more than the rest"))
        }
        // Also where nothing is decompressed that the request asks for: Transfer-Encoding (RFC 9112 section 6.1) needs no question.
        let fresh = attempt.isRest ? total - attempt.receivedBefore : total
        let maximumRatio = rules.session.configuration.maximumDecompressionRatio
        if fresh > 8 << 20, let arrived = arrived(), fresh / Int64(maximumRatio) > max(arrived, 1) {
            return .refused(
                HTTPSessionError(
                    .responseTooLarge, "the response decompresses to more than \(maximumRatio) times its size"))
        }
        return .sink
    }

    /// The sink has taken them.
    mutating func took(_ count: Int) {
        progress.received += Int64(count)
        publishProgress()
    }

    /// The sink takes no more for now.
    mutating func receiverIsFull() { _ = life.handle(.receiverFull, now: now) }

    /// Keeps bytes of a response that is no result.
    mutating func hold(_ bytes: UnsafeRawBufferPointer) -> Intake {
        switch attempt.body {
        case .undecided, .kept: return .taken
        case .held(var data):
            guard data.count + bytes.count <= Attempt.maximumHeld else {
                // The response is not wanted to its end; what follows it is.
                attempt.isRefused = true
                return .abort(HTTPSessionError(.transferFailed, "the body of an intermediate response is too long"))
            }
            attempt.body = .undecided
            data.append(contentsOf: bytes)
            attempt.body = .held(data)
            return .taken
        case .explained(var data):
            attempt.body = .explained(Data())
            data.append(contentsOf: bytes.prefix(Attempt.maximumExplanation - data.count))
            attempt.body = .explained(data)
            guard data.count < Attempt.maximumExplanation else {
                attempt.isRefused = true
                return .abort(unacceptable(data))
            }
            return .taken
        }
    }

    mutating func noteActivity() { _ = life.handle(.activity, now: now) }
}
