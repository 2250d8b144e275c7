import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore

/// The responses to requests that fail: a page for a browser that asks for one, else the document of the error. Every response has the
/// fields of ``PageHeaders``.
struct ProblemResponses: RouterMiddleware {
    typealias Context = WebContext

    let pages: PageRenderer

    func handle(
        _ request: Request, context: WebContext, next: (Request, WebContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as WebProblem {
            return response(problem, request)
        } catch let error as HTTPError where error.status == .notFound {
            return response(WebProblem(.notFound, "nothing has the path \(request.pathText)"), request)
        } catch {
            // The text of an unexpected error may have paths of this machine.
            return response(WebProblem(.internalError, "the request could not be answered"), request)
        }
    }

    private func response(_ problem: WebProblem, _ request: Request) -> Response {
        let isForPeople = request.headers[.accept]?.contains("text/html") == true && !request.pathText.hasPrefix("/api/")
        if isForPeople, let page = pages.problem(problem.status, problem.detail) {
            var response = WebRoutes.response(page)
            response.status = .init(code: problem.status)
            if let allow = problem.allow { response.headers[.allow] = allow }
            return response
        }
        var headers = HTTPFields()
        for (name, value) in problem.fields {
            if let name = HTTPField.Name(name) { headers[name] = value }
        }
        return Response(
            status: .init(code: problem.status), headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: problem.json))
        )
    }
}
