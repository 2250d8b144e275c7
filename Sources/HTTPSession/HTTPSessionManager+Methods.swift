public import FoundationEssentials
public import HTTPTypes

/// A task for each of HTTP's methods. Addresses are relative to ``baseURL``; parameters go where the request serializer puts them;
/// fields given here win over those of the serializer. What cannot be serialized is the error of a task that never starts.
extension HTTPSessionManager {
    /// Asks for a resource (RFC 9110 section 9.3.1).
    public func get(_ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.get, address, parameters, headerFields)
    }

    /// Asks for a resource's fields only.
    public func head(_ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.head, address, parameters, headerFields)
    }

    /// Sends parameters.
    public func post(_ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.post, address, parameters, headerFields)
    }

    /// Sends a form of parts, `parameters` first. The fields are those of the session's serializer, or of the ``HTTPRequestSerializer``
    /// below it; a serializer of one's own has no say in forms.
    public func post(
        _ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:], form: MultipartForm
    ) -> TransferTask {
        task { () throws(HTTPSessionError) in
            let request = TransferRequest(
                url: try RequestURL.resolve(address, against: baseURL), method: .post, headerFields: headerFields)
            return try requestSerializer.formSerializer.multipartRequest(request, parameters: parameters, form: form)
        }
    }

    /// Replaces a resource.
    public func put(_ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.put, address, parameters, headerFields)
    }

    /// Changes a resource (RFC 5789).
    public func patch(_ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.patch, address, parameters, headerFields)
    }

    /// Removes a resource.
    public func delete(_ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        task(.delete, address, parameters, headerFields)
    }

    /// Sends a body as it is, by POST unless told otherwise.
    public func upload(
        _ address: String, _ body: RequestBody, method: HTTPRequest.Method = .post, headerFields: HTTPFields = [:]
    ) -> TransferTask {
        task { () throws(HTTPSessionError) in
            let url = try RequestURL.resolve(address, against: baseURL)
            return try requestSerializer.serialize(
                TransferRequest(url: url, method: method, headerFields: headerFields, body: body))
        }
    }

    /// Downloads to a file that is not there yet; ``download(_:to:handlers:startsNow:)`` has the other rules.
    public func download(_ address: String, to file: URL, headerFields: HTTPFields = [:]) -> TransferTask {
        let place = DownloadDestination(file)
        do throws(HTTPSessionError) {
            return download(try request(.get, address, nil, headerFields), to: place)
        } catch {
            return refused(.download, .file(place), error)
        }
    }

    /// Goes on with a download that ended with an error or was cancelled, from its ``HTTPSessionError/resumeData``, in this process or a
    /// later one that has the same ``SessionConfiguration/resumeDirectory``. Resume data stays good until the file is whole, and the
    /// destination need not be the first one.
    ///
    /// `request` says what to ask for, with the fields and the options of the first one, or an address that is signed anew. Without it
    /// the first address is asked, without fields of its own: these may be secrets, and are not kept.
    ///
    /// Where the bytes cannot be reused, the whole is asked for; where nothing is known of them and no request is given, the task ends
    /// with ``HTTPSessionError/Code/cannotResume``.
    public func download(
        resuming resumeData: Data, of request: TransferRequest? = nil, to destination: DownloadDestination,
        handlers: TransferHandlers? = nil, startsNow: Bool = true
    ) -> TransferTask {
        do throws(HTTPSessionError) {
            guard let directory = core.settings.resumes else {
                throw HTTPSessionError(.cannotResume, "the session has no resumeDirectory")
            }
            let record = try directory.record(of: resumeData)
            return make(
                TaskSpecification(
                    request: request ?? TransferRequest(url: record.start), kind: .download, destination: .file(destination),
                    acceptableStatusCodes: TaskSpecification.successes, handlers: handlers, startsNow: startsNow,
                    record: directory.hasPart(record) ? record : nil))
        } catch {
            if let request { return download(request, to: destination, handlers: handlers, startsNow: startsNow) }
            return refused(.download, .file(destination), error, handlers)
        }
    }

    /// Reads a response as it comes (``TransferTask/chunks``).
    public func stream(_ address: String, parameters: Parameters? = nil, headerFields: HTTPFields = [:]) -> TransferTask {
        do throws(HTTPSessionError) {
            return stream(try request(.get, address, parameters, headerFields))
        } catch {
            return refused(.stream, .reader(ChunkBuffer {}), error)
        }
    }

    /// The request that the other methods send, for a caller who wants to change it first.
    public func request(
        _ method: HTTPRequest.Method, _ address: String, _ parameters: Parameters? = nil, _ headerFields: HTTPFields = [:]
    ) throws(HTTPSessionError) -> TransferRequest {
        let url = try RequestURL.resolve(address, against: baseURL)
        return try requestSerializer.serialize(
            TransferRequest(url: url, method: method, headerFields: headerFields), parameters: parameters)
    }

    private func task(
        _ method: HTTPRequest.Method, _ address: String, _ parameters: Parameters?, _ headerFields: HTTPFields
    ) -> TransferTask {
        task { () throws(HTTPSessionError) in try request(method, address, parameters, headerFields) }
    }

    private func task(_ build: () throws(HTTPSessionError) -> TransferRequest) -> TransferTask {
        do throws(HTTPSessionError) {
            return data(try build())
        } catch {
            return refused(.data, .memory(maximumSize: 0), error)
        }
    }

    /// A task whose request could not be made: it has an error instead of an answer.
    private func refused(
        _ kind: TransferTask.Kind, _ destination: BodyDestination, _ error: HTTPSessionError,
        _ handlers: TransferHandlers? = nil
    ) -> TransferTask {
        let request = TransferRequest(url: baseURL ?? URL(fileURLWithPath: "/"))
        return make(
            TaskSpecification(
                request: request, kind: kind, destination: destination, handlers: handlers, startsNow: false, failure: error))
    }
}
