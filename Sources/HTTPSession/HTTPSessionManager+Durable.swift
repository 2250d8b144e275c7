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
        let job =
            switch purpose {
            case .download(let destination):
                TaskJob(
                    request, .download, to: .file(destination), accepting: TaskJob.successes, sendApproval: sendApproval,
                    settings: core.settings)
            case .upload:
                TaskJob(request, .upload, to: .memory(maximumSize: limit), sendApproval: sendApproval, settings: core.settings)
            case .resumableUpload(let kind, let location):
                TaskJob(
                    request, .upload, to: .memory(maximumSize: limit), accepting: TaskJob.successes, uploadProtocol: kind,
                    uploadLocation: location, sendApproval: sendApproval, settings: core.settings)
            }
        return make(job, nil, false)
    }
}
