// A program whose own types have names that URLSession's users expect here.
import HTTPSession

struct Session {
    var user = "me"
}

struct SessionManager {
    var session = Session()
}

func name(_ session: Session, _ manager: SessionManager) -> String { session.user + manager.session.user + Session().user }
