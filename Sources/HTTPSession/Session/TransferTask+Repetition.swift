internal import FoundationEssentials
internal import Pacing

/// Responses that validation or a serializer refuses. Interceptors may request another attempt.
extension TransferTask {
    /// Returns the serializer's value of the response, or of a later response that interceptors have requested.
    ///
    /// Throws the last error of the serializer, the error of an interceptor, or the error of a repeated task that failed.
    func serialized<Serializer: ResponseSerializer>(
        _ response: TransferResponse, by serializer: Serializer
    ) async throws(HTTPSessionError) -> sending Serializer.Value {
        var (task, response) = (self, try withBody(response))
        defer { become(repeatedBy: nil) }
        while true {
            do throws(HTTPSessionError) {
                return try serializer.serialize(response)
            } catch {
                task = try await task.repetition(after: error, response)
                become(repeatedBy: task)
                response = try await task.response
            }
        }
    }

    /// Returns the response with the bytes of its file.
    private func withBody(_ response: TransferResponse) throws(HTTPSessionError) -> TransferResponse {
        guard let file = response.file else { return response }
        let limit = request.options.maximumResponseSize ?? core.settings.configuration.maximumResponseSize
        let body = try FileContent.read(file.path, atMost: limit)
        return TransferResponse(
            head: response.head, url: response.url, method: response.method, data: body, file: file, metrics: response.metrics)
    }

    /// Returns the task that repeats the request, because this task's response was not accepted. Throws `error` if no interceptor
    /// requests a retry.
    private func repetition(
        after error: HTTPSessionError, _ response: TransferResponse
    ) async throws(HTTPSessionError) -> TransferTask {
        let count = response.metrics.interceptionCount
        // A status of 400 or above has been shown to them before the task ended.
        let wasShown = error.code == .unacceptableStatus && response.statusCode >= 400
        guard isRepeatable, !wasShown, !handlers.interceptors.isEmpty, count < TransferHandlers.maximumInterceptions else {
            throw error
        }
        let attempt = FailedAttempt(request: request, response: response.head, error: error, retryCount: count)
        var next = request
        switch await handlers.retryDecision(after: attempt, within: core.settings.taskLimits.handlerTimeout) {
        case nil where Task.isCancelled: throw HTTPSessionError(.cancelled, "the task was canceled", context: context)
        case nil:
            throw HTTPSessionError(.handlerTimedOut, "an interceptor did not answer in time", context: context, underlying: error)
        case .proceed: throw error
        case .fail(let reason): throw HTTPSessionError.interceptorFailure(reason)
        case .retry(let delay):
            do { try await core.settings.transport.sleep(for: max(.zero, delay)) } catch {
                throw HTTPSessionError(.cancelled, "the task was canceled", context: context)
            }
        case .retryWith(let request):
            next = request
            next.body = self.request.body
        }
        core.outbox.announce(.willRetry(self, error))
        return repeated(next, interceptions: count + 1)
    }

    /// Returns a new task of the same session, with this task's handlers.
    private func repeated(_ next: TransferRequest, interceptions: Int) -> TransferTask {
        let limit = next.options.maximumResponseSize ?? core.settings.configuration.maximumResponseSize
        let job = TaskJob(
            next, kind, to: .memory(maximumSize: limit), interceptions: interceptions, settings: core.settings)
        let task = TransferTask(
            job, handlers: handlers, core: core, validation: validation, decisions: decisions, identities: identities)
        core.outbox.detail(.taskCreated(task))
        if let failure = job.failure { task.fail(failure) } else { task.resume() }
        return task
    }
}
