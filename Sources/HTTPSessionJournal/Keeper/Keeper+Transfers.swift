internal import Dispatch
internal import EventLoop
internal import Foundation
internal import HTTPSession
internal import Logging

/// What the session does for the tasks.
extension Keeper {
    func transfer(_ record: TaskRecord) {
        let task: TransferTask
        do throws(DurableSessionError) {
            var request = try record.intent.request()
            request.options.resourceTimeout = .seconds(max(1, min(record.expires - surroundings.clock(), 365 * 24 * 3600)))
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
        // An upload's next request leaves when its place, which the answer to the one before may have told, is written down: else the server
        // might have all of it before anybody else could know where.
        let asks = entries[record.id]?.life.terms.isRepeatable == false || record.intent.uploadProtocol != nil
        let approval = asks ? sendApproval(of: record.id) : nil
        if let file = hiddenFile(of: record) {
            return manager.task(request, for: .download(file.download), sendApproval: approval)
        }
        guard let uploadProtocol = record.intent.uploadProtocol else {
            return manager.task(request, for: .upload, sendApproval: approval)
        }
        let location = UploadLocation(known: record.place) { [weak self, id = record.id] place in
            guard let self else { return }
            HomeThread.run { self.queue.async { self.noted(place, id) } }
        }
        return manager.task(request, for: .resumableUpload(uploadProtocol, location: location), sendApproval: approval)
    }

    /// That a request which is not to be made twice leaves is written down before, and taken back when it has not left.
    private func sendApproval(of id: String) -> SendApproval {
        let attempts = Locked(0)
        return SendApproval(
            approve: { [weak self] in
                attempts.withLock { $0 += 1 }
                guard let self else { throw Keeper.closed }
                try await onQueue { keeper throws(DurableSessionError) in
                    let error = keeper.handle(.leaves, id)
                    keeper.entries[id]?.isPostponed = error != nil
                    if let error { throw error }
                }
            },
            wasNotSent: { [weak self] in
                guard let self else { return }
                let last = attempts.withLock { $0 }
                HomeThread.run {
                    self.queue.async {
                        // Another attempt may be on its way.
                        if attempts.withLock({ $0 }) == last { self.handle(.stayed, id) }
                    }
                }
            })
    }

    private func noted(_ place: URL, _ id: String) {
        guard phase == .open || phase == .closing, entries[id]?.transfer != nil, entries[id]?.record.place != place else {
            return
        }
        guard surroundings.mayStep() else {
            phase = .dead
            return
        }
        do throws(DurableSessionError) {
            try journal.write(place: place, of: id)
            entries[id]?.record.place = place
        } catch {
            logger.error("the place of task \(id) is not written down: \(error)")
        }
    }

    func heard(_ event: SessionEvent) {
        switch event {
        case .taskCompleted(let task, let result): queue.async { self.completed(task, result) }
        case .sessionInvalidated: queue.async { self.finishClosing() }
        default: break
        }
    }

    private func completed(_ task: TransferTask, _ result: Result<TransferResponse, HTTPSessionError>) {
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
            let answer = Answer(
                statusCode: response.statusCode, url: response.url, body: Data(response.data.prefix(limits.answerBytes)))
            let file = hiddenFile(of: record)
            file?.sync()
            handle(.transferred(answer, hidden: file.flatMap { HiddenFile.mark($0.path) }), id)
        // What the session's end has ended goes on in another process.
        case .failure where phase == .closing: break
        case .failure(let error) where entries[id]?.isPostponed == true && error.code != .cancelled: postpone(id)
        case .failure(let error): handle(.transferFailed(Failure(error)), id)
        }
    }
}
