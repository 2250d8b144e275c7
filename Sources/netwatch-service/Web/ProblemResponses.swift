import NIOCore
import NIOHTTP1

/// The responses to requests that fail: a page for a browser that asks for one, else the document of the error.
struct ProblemResponses: Sendable {
    let pages: PageRenderer

    func response(to error: any Error, _ request: WebRequest) -> WebResponse {
        // The text of an unexpected error may have paths of this machine.
        let problem = error as? WebProblem ?? WebProblem(.internalError, "the request could not be answered")
        let isForPeople = request.field("Accept")?.contains("text/html") == true && !request.path.hasPrefix("/api/")
        if isForPeople, let page = pages.problem(problem.status, problem.detail) {
            var response = WebRoutes.response(page)
            response.status = problem.status
            if let allow = problem.allow { response.headers.add(name: "Allow", value: allow) }
            return response
        }
        return WebResponse(
            status: problem.status, headers: HTTPHeaders(problem.fields), body: .bytes(ByteBuffer(bytes: problem.json)))
    }
}
