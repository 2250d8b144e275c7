import Foundation
import HTTPSession
import HTTPTypes

/// A response as a server might have sent it.
func response(
    _ body: some Sequence<UInt8>, type: String? = nil, status: HTTPResponse.Status = .ok, method: HTTPRequest.Method = .get
) -> TransferResponse {
    var head = HTTPResponse(status: status)
    if let type { head.headerFields[.contentType] = type }
    return TransferResponse(head: ResponseHead(head), url: URL(filePath: "/things"), method: method, data: Data(body))
}

/// The same with a body of text.
func response(
    _ text: String, type: String? = nil, status: HTTPResponse.Status = .ok, method: HTTPRequest.Method = .get
) -> TransferResponse {
    response(text.utf8, type: type, status: status, method: method)
}
