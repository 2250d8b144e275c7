internal import Foundation
internal import Glibc
internal import HTTPTypes

/// The end of a task: what becomes of its result.
extension TaskRun {
    func finish(_ reason: TaskMachine.Reason) {
        withdrawQuestion()
        let error: HTTPSessionError? =
            switch reason {
            case .ended: pendingResult
            case .cancelled: HTTPSessionError(.cancelled, "the task was cancelled")
            case .resourceTimedOut:
                HTTPSessionError(.timedOut, "not done within \(Duration.nanoseconds(job.limits.resourceTimeout))")
            case .handlerTimedOut:
                HTTPSessionError(
                    .handlerTimedOut, "a handler did not answer within \(Duration.nanoseconds(job.limits.handlerTimeout))")
            }
        if let error {
            guard let sink else {
                task.chunkBuffer?.finish(error)
                return complete(.failure(error))
            }
            let (id, core) = (task.id, task.core)
            // Whoever hears of the end may end the program: nothing shall be left then.
            if sink.discard(error, { core.post(.discarded(id, $0)) }) { complete(.failure(error)) }
            return
        }
        guard let sink else { return complete(.success(ReceivedBody())) }
        if let body = sink.finishNow() { return complete(.success(body)) }
        let (id, core) = (task.id, task.core)
        sink.finish { core.post(.delivered(id, $0)) }
    }

    func discarded(_ error: HTTPSessionError) { complete(.failure(error)) }

    func delivered(_ body: Result<ReceivedBody, HTTPSessionError>) {
        if case .file(var destination)? = exchange.destination, case .success(let body) = body {
            destination.file = body.file ?? destination.file
            loop.outbox.announce(.fileMoved(task, destination))
        }
        complete(body)
    }

    private func complete(_ body: Result<ReceivedBody, HTTPSessionError>) {
        leaveGate()
        metrics.taskInterval = DateInterval(start: started, end: max(started, Date()))
        metrics.interceptionCount = interceptions
        publishProgress(isLast: true)
        let result: Result<TransferResponse, HTTPSessionError>
        switch body {
        case .success(let body):
            if let head = exchange.wholeHead ?? exchange.head {
                result = .success(
                    TransferResponse(
                        head: head, url: request.url, method: request.method, data: body.data, file: body.file, metrics: metrics))
            } else {
                result = .failure(HTTPSessionError(.badServerResponse, "there is no response", context: task.context))
            }
        case .failure(var error):
            error.context.url = error.context.url ?? request.url.withoutSecrets
            error.context.method = error.context.method ?? request.method.rawValue
            error.context.statusCode = error.context.statusCode ?? exchange.head?.statusCode
            // Before the first byte, when the place is found taken, or behind the last.
            if error.code == .cannotMoveFile || hasNoPlace(error) { loop.outbox.announce(.fileMoveFailed(task, error)) }
            result = .failure(error)
        }
        // A response handler may have made a download of a stream: its reader hears of the end here.
        if case .failure(let error) = result {
            task.note(metrics)
            task.chunkBuffer?.finish(error)
        } else {
            task.chunkBuffer?.finish(nil)
        }
        loop.outbox.complete(task, result)
        loop.forget(task.id)
    }

    /// Whether the file's directory is missing, or takes no files: moving would find that out, if the bytes lay elsewhere until then.
    private func hasNoPlace(_ error: HTTPSessionError) -> Bool {
        guard error.code == .cannotWriteFile, task.kind == .download, let number = error.context.systemError else { return false }
        return [ENOENT, ENOTDIR, EACCES, EPERM, EROFS, EEXIST, EISDIR, ENAMETOOLONG].contains(number)
    }

    /// Whether what it holds of the user's its task holds too.
    var holdsNothingOfItsOwn: Bool {
        job.segments.isEmpty && bodySegments.isEmpty && job.upload == nil && redirects == 0 && task.handlers.interceptors.isEmpty
    }
}
