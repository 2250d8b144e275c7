internal import Dispatch
internal import EventLoop
internal import Foundation
internal import HTTPSession
internal import Logging

/// The transfers that the session makes for the tasks.
extension TaskCoordinator {
    func transfer(_ record: TaskRecord) {
        let task: TransferTask
        do throws(DurableSessionError) {
            var request = try record.intent.request()
            request.options.resourceTimeout = .seconds(max(1, min(record.expires - environment.clock(), 365 * 24 * 3600)))
            task = makeTask(request, record)
        } catch {
            handle(.transferFailed(Failure(.invalidRequest, error.reason)), record.id)
            return
        }
        owners[task.id] = record.id
        entries[record.id]?.transfer = task
        task.resume()
    }

    private func makeTask(_ request: TransferRequest, _ record: TaskRecord) -> TransferTask {
        // The response to an upload's first request may announce the upload's location. The next request is sent when the journal has that
        // location. Otherwise the server could have the complete upload while no later process knows its location.
        let needsApproval = entries[record.id]?.lifecycle.terms.isRepeatable == false || record.intent.uploadProtocol != nil
        let sendApproval = needsApproval ? sendApproval(of: record.id) : nil
        if let file = hiddenFile(of: record) {
            return manager.task(request, for: .download(file.download), sendApproval: sendApproval)
        }
        guard let uploadProtocol = record.intent.uploadProtocol else {
            return manager.task(request, for: .upload, sendApproval: sendApproval)
        }
        let location = UploadLocation(known: record.uploadLocation) { [weak self, id = record.id] location in
            guard let self else { return }
            HomeThread.run { self.queue.async { self.record(location, id) } }
        }
        return manager.task(request, for: .resumableUpload(uploadProtocol, location: location), sendApproval: sendApproval)
    }

    /// Records in the journal that a request which must not be repeated is about to be sent, and revokes that if it was not sent.
    private func sendApproval(of id: String) -> SendApproval {
        let attempts = Locked(0)
        return SendApproval(
            approve: { [weak self] in
                attempts.withLock { $0 += 1 }
                guard let self else { throw TaskCoordinator.closed }
                try await onQueue { coordinator throws(DurableSessionError) in
                    let error = coordinator.handle(.requestWillBeSent, id)
                    coordinator.entries[id]?.isPostponed = error != nil
                    if let error { throw error }
                }
            },
            wasNotSent: { [weak self] in
                guard let self else { return }
                let last = attempts.withLock { $0 }
                HomeThread.run {
                    self.queue.async {
                        // Another attempt may have begun meanwhile.
                        if attempts.withLock({ $0 }) == last { self.handle(.requestWasNotSent, id) }
                    }
                }
            })
    }

    private func record(_ location: URL, _ id: String) {
        guard phase == .open || phase == .closing, entries[id]?.transfer != nil, entries[id]?.record.uploadLocation != location
        else { return }
        guard environment.mayStep() else {
            phase = .dead
            return
        }
        do throws(DurableSessionError) {
            try journal.write(uploadLocation: location, of: id)
            entries[id]?.record.uploadLocation = location
        } catch {
            logger.error("the location of upload \(id) is not recorded: \(error)")
        }
    }

    func receive(_ event: SessionEvent) {
        switch event {
        case .taskCompleted(let task, let result): queue.async { self.complete(task, result) }
        case .sessionInvalidated: queue.async { self.finishClosing() }
        default: break
        }
    }

    private func complete(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
        guard let id = owners.removeValue(forKey: task.id), let record = entries[id]?.record else { return }
        entries[id]?.transfer = nil
        switch result {
        case .success(let response):
            guard (200...299).contains(response.statusCode) else {
                var failure = Failure(.unacceptableStatus, "the server answered \(response.statusCode)")
                failure.statusCode = response.statusCode
                handle(.transferFailed(failure), id)
                return
            }
            let final = FinalResponse(
                statusCode: response.statusCode, url: response.url,
                body: Data(response.data.prefix(limits.responseBodyBytes)))
            let file = hiddenFile(of: record)
            file?.sync()
            handle(.transferred(final, hiddenFile: file.flatMap { HiddenFile.identity($0.path) }), id)
        // Closing the session ends its transfers. The tasks continue in another process.
        case .failure where phase == .closing: break
        case .failure(let error) where entries[id]?.isPostponed == true && error.code != .cancelled: postpone(id)
        case .failure(let error): handle(.transferFailed(Failure(error)), id)
        }
    }
}
