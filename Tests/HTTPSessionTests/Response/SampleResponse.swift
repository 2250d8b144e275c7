import Foundation
import HTTPSession
import HTTPTypes

/// A response with this body, content type, status and method of its request.
func response(
    _ body: some Sequence<UInt8>, type: String? = nil, status: HTTPResponse.Status = .ok, method: HTTPRequest.Method = .get
) -> TransferResponse {
    var head = HTTPResponse(status: status)
    if let type { head.headerFields[.contentType] = type }
    return TransferResponse(head: ResponseHead(head), url: URL(filePath: "/things"), method: method, data: Data(body))
}

/// A response with a text body.
func response(
    _ text: String, type: String? = nil, status: HTTPResponse.Status = .ok, method: HTTPRequest.Method = .get
) -> TransferResponse {
    response(text.utf8, type: type, status: status, method: method)
}
