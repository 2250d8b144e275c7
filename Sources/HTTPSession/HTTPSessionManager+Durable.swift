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
        switch purpose {
        case .download(let destination):
            return make(request, .download, .file(destination), nil, 200...299, false, departure: departure)
        case .upload: return make(request, .upload, .memory(maximumSize: limit), nil, nil, false, departure: departure)
        case .resumableUpload(let kind, let place):
            return make(
                request, .upload, .memory(maximumSize: limit), nil, 200...299, false, resumably: kind, at: place,
                departure: departure)
        }
    }
}
