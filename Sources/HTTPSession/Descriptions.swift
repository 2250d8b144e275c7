internal import FoundationEssentials
internal import HTTPTypes

// What `print` and `dump` see of that which may hold secrets: names of fields, never their values; addresses without users and queries.

extension Cookie: CustomReflectable {
    /// All but the value.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "name": name, "domain": domain, "path": path, "includesSubdomains": includesSubdomains, "expires": expires as Any,
                "isSecure": isSecure, "isHTTPOnly": isHTTPOnly,
            ])
    }
}

extension CookieStore: CustomStringConvertible, CustomReflectable {
    /// How many cookies there are.
    public var description: String { "store of cookies: \(present.lines.count)" }
    /// The same.
    public var customMirror: Mirror { Mirror(self, children: ["cookies": present.lines.count]) }
}

extension TransferRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method and the address, without what may be secret.
    public var description: String { "\(method) \(url.withoutSecrets)" }
    /// The same.
    public var debugDescription: String { description }
    /// The names of the fields, without their values, and nothing of the body.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "method": method.rawValue, "url": url.withoutSecrets, "headerFields": headerFields.map(\.name.rawName),
                "options": options,
            ])
    }
}

extension SessionConfiguration.Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Without user and password.
    public var description: String {
        switch self {
        case .environment: return "environment"
        case .none: return "none"
        case .explicit(let text, _):
            let scheme = text.firstRange(of: "://").map { text[..<$0.upperBound] } ?? ""
            // The last @ ends them, whatever they have themselves.
            let place = text.dropFirst(scheme.count).split(separator: "@", omittingEmptySubsequences: false).last ?? ""
            return "\(scheme)\(place)"
        }
    }
    /// The same.
    public var debugDescription: String { description }
    /// The same, and who is reached directly.
    public var customMirror: Mirror {
        var direct: [String] = []
        if case .explicit(_, let hosts) = self { direct = hosts }
        return Mirror(self, children: ["proxy": description, "except": direct])
    }
}

extension SessionConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name and the way out.
    public var description: String { "configuration \(name), proxy: \(proxy)" }
    /// The same.
    public var debugDescription: String { description }
    /// What most often matters, without secrets.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "name": name, "proxy": proxy, "insecureHTTP": insecureHTTP, "httpVersion": httpVersion,
                "addressFamily": addressFamily, "interface": interface as Any, "unixSocketPath": unixSocketPath as Any,
                "hostOverrides": hostOverrides, "maximumConnections": maximumConnections,
                "maximumConnectionsPerHost": maximumConnectionsPerHost, "connectTimeout": connectTimeout,
                "requestTimeout": requestTimeout, "resourceTimeout": resourceTimeout, "handlerTimeout": handlerTimeout,
                "retryPolicy": retryPolicy, "waitsForConnectivity": waitsForConnectivity,
                "additionalHeaderFields": additionalHeaderFields.map(\.name.rawName), "cookies": cookies,
                "hstsFile": hstsFile as Any, "resumeDirectory": resumeDirectory as Any,
            ])
    }
}

extension TransferTask: CustomReflectable {
    /// What is asked for, and how far it is.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["id": id, "request": request, "kind": kind, "state": state, "currentProgress": currentProgress])
    }
}

extension HTTPSessionManager: CustomStringConvertible, CustomReflectable {
    /// The name and the base URL.
    public var description: String { "session \(configuration.name) \(baseURL?.withoutSecrets ?? "")" }
    /// Name, base URL and configuration.
    public var customMirror: Mirror {
        Mirror(self, children: ["baseURL": baseURL?.withoutSecrets as Any, "configuration": configuration])
    }
}

extension TransferResponse: CustomStringConvertible, CustomReflectable {
    /// The method, the address and the status.
    public var description: String { "\(method) \(url.withoutSecrets) \(statusCode)" }
    /// The same, and how long the body is; neither that nor the fields.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "method": method.rawValue, "url": url.withoutSecrets, "statusCode": statusCode, "bytes": data.count,
                "file": file as Any, "metrics": metrics,
            ])
    }
}
