/// Tasks that are written down, not yet begun. They are asked for by their own library, and otherwise as of any session.
extension HTTPSessionManager {
    /// What becomes of a durable task's request and response.
    package enum Purpose: Sendable {
        case download(DownloadDestination)
        case upload
        /// `place`: where another process has left it.
        case resumableUpload(UploadProtocol, place: UploadPlace)
    }

    /// `departure`: who is asked before the request leaves.
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
