// Tasks of HTTPSessionJournal, which records them before they start. In all other respects they behave like other tasks.
extension HTTPSessionManager {
    /// The kind of a durable task.
    package enum Purpose: Sendable {
        case download(DownloadDestination)
        case upload
        /// A resumable upload. `place` is the state that another process has recorded.
        case resumableUpload(UploadProtocol, place: UploadPlace)
    }

    /// Creates a task that is not started. The handler `departure` is asked before the request is sent.
    package func task(_ request: TransferRequest, for purpose: Purpose, departure: Departure?) -> TransferTask {
        let limit = request.options.maximumResponseSize ?? configuration.maximumResponseSize
        var specification = TaskSpecification(
            request: request, kind: .upload, destination: .memory(maximumSize: limit), startsImmediately: false,
            departure: departure)
        switch purpose {
        case .download(let destination):
            specification.kind = .download
            specification.destination = .file(destination)
            specification.acceptableStatusCodes = TaskSpecification.successes
        case .upload: break
        case .resumableUpload(let kind, let place):
            specification.uploadProtocol = kind
            specification.uploadPlace = place
            specification.acceptableStatusCodes = TaskSpecification.successes
        }
        return make(specification)
    }
}
