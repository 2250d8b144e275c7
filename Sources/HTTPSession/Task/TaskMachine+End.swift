internal import FoundationEssentials
internal import HTTPTypes

/// How a task ends and how its result is made.
extension TaskMachine {
    /// Ends the task with an error.
    mutating func end(with error: HTTPSessionError) {
        pendingError = error
        advance(.ended)
    }

    /// Ends the task with the last response, which is complete: the sink makes the result from it.
    mutating func endWithResponse() {
        if !verifyDigestIfNeeded(), !verifyUploadDigestIfNeeded() { advance(.ended) }
    }

    mutating func finish(_ reason: TaskStateMachine.Reason) {
        withdrawQuestion()
        var error: HTTPSessionError? =
            switch reason {
            case .ended: pendingError
            case .cancelled: HTTPSessionError(.cancelled, "the task was canceled")
            case .resourceTimedOut:
                HTTPSessionError(.timedOut, "not done within \(Duration.nanoseconds(rules.limits.resourceTimeout))")
            case .handlerTimedOut:
                HTTPSessionError(
                    .handlerTimedOut, "a handler did not answer within \(Duration.nanoseconds(rules.limits.handlerTimeout))")
            case .connectivityTimedOut: connectivityTimeoutError
            }
        if reason == .resourceTimedOut { error?.cause = causeOfSilence }
        if let error { issue(.discardBody(error)) } else { effects.append(.finishSink) }
    }

    /// The sink has finished or discarded the body. `interval`: from the task's first start to now.
    mutating func delivered(_ body: Result<ReceivedBody, HTTPSessionError>, during interval: DateInterval, now: Int64) {
        self.now = now
        leaveOutage()
        metrics.taskInterval = interval
        metrics.interceptionCount = interceptions
        if case .file(var destination)? = attempt.destination, case .success(let body) = body {
            destination.file = body.file ?? destination.file
            issue(.report(.fileMoved(destination)))
        }
        effects.append(.publishProgress)
        result = result(of: body)
        effects.append(.completeTask)
    }

    private mutating func result(
        of body: Result<ReceivedBody, HTTPSessionError>
    ) -> Result<TransferResponse, HTTPSessionError> {
        switch body {
        case .success(let body):
            guard let head = attempt.firstResponseHead ?? attempt.head else {
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
            // The destination may be found unusable before the first byte or after the last one.
            if error.code == .cannotMoveFile || hasUnusableDirectory(error) { issue(.report(.fileMoveFailed(error))) }
            return .failure(error)
        }
    }

    /// Whether the file's directory is missing or not writable. A download that wrote elsewhere first would discover that when it
    /// moves the file.
    private func hasUnusableDirectory(_ error: HTTPSessionError) -> Bool {
        error.code == .cannotWriteFile && kind == .download && FileFailure.isDestinationFault(error)
    }
}
