internal import FoundationEssentials
internal import HTTPTypes

/// The end of a task: what becomes of its result.
extension TransferMachine {
    /// The task ends with an error.
    mutating func end(with error: HTTPSessionError) {
        pendingResult = error
        live(.ended)
    }

    /// The last response is whole: its sink makes a result of it.
    mutating func endWithResponse() {
        if !verifies(), !verifiesUpload() { live(.ended) }
    }

    mutating func finish(_ reason: TaskMachine.Reason) {
        withdrawQuestion()
        let error: HTTPSessionError? =
            switch reason {
            case .ended: pendingResult
            case .cancelled: HTTPSessionError(.cancelled, "the task was cancelled")
            case .resourceTimedOut:
                HTTPSessionError(.timedOut, "not done within \(Duration.nanoseconds(rules.limits.resourceTimeout))")
            case .handlerTimedOut:
                HTTPSessionError(
                    .handlerTimedOut, "a handler did not answer within \(Duration.nanoseconds(rules.limits.handlerTimeout))")
            }
        if let error { order(.discard(error)) } else { effects.append(.deliver) }
    }

    /// Nothing is left to be done with what has come. `interval`: from the task's first start.
    mutating func delivered(_ body: Result<ReceivedBody, HTTPSessionError>, during interval: DateInterval, now: Int64) {
        self.now = now
        leaveGate()
        metrics.taskInterval = interval
        metrics.interceptionCount = interceptions
        if case .file(var destination)? = attempt.destination, case .success(let body) = body {
            destination.file = body.file ?? destination.file
            order(.tell(.fileMoved(destination)))
        }
        effects.append(.publishProgress)
        result = result(of: body)
        effects.append(.complete)
    }

    private mutating func result(
        of body: Result<ReceivedBody, HTTPSessionError>
    ) -> Result<TransferResponse, HTTPSessionError> {
        switch body {
        case .success(let body):
            guard let head = attempt.wholeHead ?? attempt.head else {
                return .failure(
                    HTTPSessionError(.badServerResponse, "there is no response", context: .init(of: rules.request)))
            }
            return .success(
                TransferResponse(
                    head: head, url: request.url, method: request.method, data: body.data, file: body.file, metrics: metrics))
        case .failure(var error):
            error.context.url = error.context.url ?? request.url.withoutSecrets
            error.context.method = error.context.method ?? request.method.rawValue
            error.context.statusCode = error.context.statusCode ?? attempt.head?.statusCode
            // Before the first byte, when the place is found taken, or behind the last.
            if error.code == .cannotMoveFile || hasNoPlace(error) { order(.tell(.fileMoveFailed(error))) }
            return .failure(error)
        }
    }

    /// Whether the file's directory is missing, or takes no files: moving would find that out, if the bytes lay elsewhere until then.
    private func hasNoPlace(_ error: HTTPSessionError) -> Bool {
        error.code == .cannotWriteFile && kind == .download && FileFailure.isDestinationFault(error)
    }
}
