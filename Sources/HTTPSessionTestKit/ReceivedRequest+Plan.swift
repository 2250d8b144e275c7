import HTTPSession
import HTTPTypes

extension ReceivedRequest {
    /// The request of an attempt, as it would be sent over HTTP/1.1, without its body. `cookies` are those of the session's store.
    init(_ plan: TransferPlan, cookies: [UInt8] = [], arrival: Int) {
        let scheme = plan.url.firstRange(of: "://")?.upperBound ?? plan.url.startIndex
        let authority = plan.url[scheme...].prefix { !"/?#".contains($0) }
        let rest = plan.url[authority.endIndex...]
        var fields = plan.headerLines.compactMap(HeaderField.init(line:))
        let allCookies = [plan.cookies, String(decoding: cookies, as: UTF8.self)].filter { !$0.isEmpty }
        if !allCookies.isEmpty { fields.append(HeaderField("Cookie", allCookies.joined(separator: "; "))) }
        if let login = plan.login.flatMap(ReceivedRequest.authorization) { fields.append(login) }
        switch plan.body {
        case .none: break
        case .length(let length): fields.append(HeaderField("Content-Length", "\(length)"))
        case .untilEnd: fields.append(HeaderField("Transfer-Encoding", "chunked"))
        }
        let host = plan.namesHost ? [] : [HeaderField("Host", String(authority))]
        self.init(
            method: plan.method, target: rest.hasPrefix("/") ? String(rest) : "/" + rest, version: "HTTP/1.1",
            fields: host + fields, connection: arrival, numberOnConnection: 1, arrival: arrival, tls: nil)
    }

    /// The credentials of the schemes that need no answer to a challenge (RFC 7617, RFC 6750).
    private static func authorization(_ login: TransferPlan.Login) -> HeaderField? {
        if login.schemes.contains(.bearer) { return HeaderField("Authorization", "Bearer \(login.password)") }
        guard login.schemes.contains(.basic),
            let value = try? RequestFields.basicAuthorization(username: login.user, password: login.password)
        else { return nil }
        return HeaderField("Authorization", value)
    }

    /// Whether a session may send the request twice (`TransferRequest.isIdempotent`).
    var isIdempotent: Bool { self["idempotency-key"] != nil || HTTPRequest.Method(method)?.isIdempotent == true }

    /// The bytes of request line and fields.
    var headLength: Int64 {
        let lines = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        return Int64(method.utf8.count + target.utf8.count + version.utf8.count + 6 + lines)
    }
}

extension HeaderField {
    /// A line as libcurl takes it (CURLOPT_HTTPHEADER): `Name: value`, `Name;` for an empty value. `nil`: `Name:`, which leaves a field out.
    fileprivate init?(line: String) {
        guard let end = line.firstIndex(where: { $0 == ":" || $0 == ";" }) else { return nil }
        let value = line[line.index(after: end)...].drop { $0 == " " }
        if line[end] == ":" && value.isEmpty { return nil }
        self.init(String(line[..<end]), line[end] == ";" ? "" : String(value))
    }
}
