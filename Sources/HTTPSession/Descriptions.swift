internal import FoundationEssentials
internal import HTTPTypes

// The descriptions of types that may hold secrets: names of fields without their values, and URLs without users and queries.

extension Cookie: CustomReflectable {
    /// All properties except the value.
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
    /// The number of cookies.
    public var description: String { "store of cookies: \(lines.count)" }
    /// The number of cookies.
    public var customMirror: Mirror { Mirror(self, children: ["cookies": lines.count]) }
}

extension TransferRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The method and the URL without user, password, query and fragment.
    public var description: String { "\(method) \(url.withoutSecrets)" }
    /// The method and the URL without user, password, query and fragment.
    public var debugDescription: String { description }
    /// The method, the URL, the options, and the names of the fields without their values and the body.
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
    /// The proxy without user and password.
    public var description: String {
        switch self {
        case .environment: return "environment"
        case .none: return "none"
        case .explicit(let text, _):
            let scheme = text.firstRange(of: "://").map { text[..<$0.upperBound] } ?? ""
            // The last @ ends the user and the password, which may contain others.
            let host = text.dropFirst(scheme.count).split(separator: "@", omittingEmptySubsequences: false).last ?? ""
            return "\(scheme)\(host)"
        }
    }
    /// The proxy without user and password.
    public var debugDescription: String { description }
    /// The proxy without user and password, and the hosts that need no proxy.
    public var customMirror: Mirror {
        var direct: [String] = []
        if case .explicit(_, let hosts) = self { direct = hosts }
        return Mirror(self, children: ["proxy": description, "except": direct])
    }
}

extension SessionConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name and the proxy.
    public var description: String { "configuration \(name), proxy: \(proxy)" }
    /// The name and the proxy.
    public var debugDescription: String { description }
    /// The most important properties, without secrets.
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
                "connectivityTimeout": connectivityTimeout,
                "additionalHeaderFields": additionalHeaderFields.map(\.name.rawName),
                "forwardedHeaderFields": forwardedHeaderFields.map(\.rawName).sorted(), "cookies": cookies,
                "hstsFile": hstsFile as Any, "resumeDirectory": resumeDirectory as Any,
            ])
    }
}

extension TransferTask: CustomReflectable {
    /// The request, the kind, the state and the progress of the task.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["id": id, "request": request, "kind": kind, "state": state, "currentProgress": currentProgress])
    }
}

extension HTTPSessionManager: CustomStringConvertible, CustomReflectable {
    /// The name and the base URL.
    public var description: String { "session \(configuration.name) \(baseURL?.withoutSecrets ?? "")" }
    /// The base URL and the configuration.
    public var customMirror: Mirror {
        Mirror(self, children: ["baseURL": baseURL?.withoutSecrets as Any, "configuration": configuration])
    }
}

extension TransferResponse: CustomStringConvertible, CustomReflectable {
    /// The method, the URL without secrets, and the status.
    public var description: String { "\(method) \(url.withoutSecrets) \(statusCode)" }
    /// The method, the URL, the status, the length of the body, the file and the metrics. The body and the fields are left out.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "method": method.rawValue, "url": url.withoutSecrets, "statusCode": statusCode, "bytes": data.count,
                "file": file as Any, "metrics": metrics,
            ])
    }
}
