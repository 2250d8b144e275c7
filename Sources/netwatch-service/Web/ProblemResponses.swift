import NIOCore
import NIOHTTP1

/// The responses to requests that fail: a page for a browser that asks for one, else the document of the error.
struct ProblemResponses: Sendable {
    let pages: PageRenderer
    let renders: RenderQueue

    func response(to error: any Error, _ request: WebRequest) async -> WebResponse {
        // The text of an unexpected error may have paths of this machine.
        let problem = error as? WebProblem ?? WebProblem(.internalError, "the request could not be answered")
        let isForPeople =
            request.field("Accept")?.contains("text/html") == true && !request.path.hasPrefix("/api/")
            && request.head.method != .HEAD
        if isForPeople, let page = pages.problem(problem.status, problem.detail),
            let document = try? await page.prepare(request.client),
            let rendered = await renders.render(document, for: request.client)
        {
            var response = WebRoutes.response(type: page.type, status: problem.status, rendered.buffer)
            response.document = rendered
            if let allow = problem.allow { response.headers.add(name: "Allow", value: allow) }
            return response
        }
        return Self.document(of: problem)
    }

    /// Returns the document of an error.
    static func document(of problem: WebProblem) -> WebResponse {
        WebResponse(status: problem.status, headers: HTTPHeaders(problem.fields), body: .bytes(ByteBuffer(bytes: problem.json)))
    }
}
