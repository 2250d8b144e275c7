import Foundation
import HTTPSession
import HTTPTypes
import Testing

/// A request that is never sent, with the properties of the serialized request that tests check.
struct SerializedRequest {
    let request: TransferRequest

    static let url = "https://example.com/things"

    init(
        _ method: HTTPRequest.Method = .get, _ url: String = url, fields: HTTPFields = [:], body: RequestBody = .none,
        parameters: Parameters? = nil, by serializer: some RequestSerializer = HTTPRequestSerializer(headerFields: [:])
    ) throws {
        let request = TransferRequest(url: try #require(URL(string: url)), method: method, headerFields: fields, body: body)
        self.request = try serializer.serialize(request, parameters: parameters)
    }

    var url: String { request.url.absoluteString }

    func field(_ name: HTTPField.Name) -> String? { request.headerFields[name] }

    /// The body as text; `nil` without one.
    var body: String? {
        switch request.body {
        case .data(let data): String(decoding: data, as: UTF8.self)
        default: nil
        }
    }
}

extension HTTPSessionError {
    /// The error that `body` throws; `nil` if it throws none or an error of another type.
    static func thrown(by body: () throws -> Any?) -> HTTPSessionError? {
        do {
            _ = try body()
            return nil
        } catch {
            return error as? HTTPSessionError
        }
    }
}

/// An error that no library throws.
struct Refusal: Error, Equatable {}
