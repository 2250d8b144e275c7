/// The tasks of HTTPSessionJournal, which records them before they start. In all else they equal other tasks of a
/// session.
extension HTTPSessionManager {
    /// The purpose of a durable task: the use of its request and response.
    package enum Purpose: Sendable {
        case download(DownloadDestination)
        case upload
        /// An upload that continues at `location` if another process has begun it.
        case resumableUpload(UploadProtocol, location: UploadLocation)
    }

    /// Makes a task that is not started. The session calls `sendApproval` before it sends each request of the
    /// task.
    package func task(_ request: TransferRequest, for purpose: Purpose, sendApproval: SendApproval?) -> TransferTask {
        let limit = request.options.maximumResponseSize ?? configuration.maximumResponseSize
        var specification = TaskSpecification(
            request: request, kind: .upload, destination: .memory(maximumSize: limit), startsImmediately: false,
            sendApproval: sendApproval)
        switch purpose {
        case .download(let destination):
            specification.kind = .download
            specification.destination = .file(destination)
            specification.acceptableStatusCodes = TaskSpecification.successes
        case .upload: break
        case .resumableUpload(let kind, let location):
            specification.uploadProtocol = kind
            specification.uploadLocation = location
            specification.acceptableStatusCodes = TaskSpecification.successes
        }
        return make(specification)
    }
}
