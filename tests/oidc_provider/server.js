// A real OpenID provider on a loopback port: `oidc-provider` with people in memory.
// It prints its port. Tests change people and revoke their grants at POST /control.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const [redirectUri, logoutUri] = process.argv.slice(2);
const people = new Map();
const grants = new Set();
let isDown = false;

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const issuer = `http://127.0.0.1:${port}`;
  const shared = {
    client_secret: 'a secret: with/signs% of the real provider',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    require_auth_time: true,
  };
  const provider = new Provider(issuer, {
    clients: [
      {
        ...shared,
        client_id: 'console',
        backchannel_logout_uri: logoutUri,
        backchannel_logout_session_required: true,
      },
      { ...shared, client_id: 'userinfo', grant_types: ['authorization_code'] },
      { ...shared, client_id: 'expiring' },
    ],
    claims: {
      openid: ['sub', 'acr', 'amr'],
      profile: ['preferred_username', 'given_name', 'groups'],
      email: ['email'],
    },
    acrValues: ['gold'],
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    pkce: { required: () => true },
    cookies: { keys: ['only for tests'] },
    ttl: { IdToken: (_context, _token, client) => (client.clientId === 'expiring' ? 1 : 600) },
    // A refresh token without consent for offline_access, as Keycloak does it, and a new one at each use.
    issueRefreshToken: (_context, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    // The logout token goes to the test's own server on this machine, which the default refuses.
    fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
    findAccount: (_context, subject) =>
      people.has(subject)
        ? { accountId: subject, claims: () => ({ sub: subject, ...people.get(subject).claims }) }
        : undefined,
    loadExistingGrant: async (context) => {
      const { client, session, provider: source } = context.oidc;
      const id = session.grantIdFor(client.clientId);
      const known = id && (await source.Grant.find(id));
      if (known) return known;
      const grant = new source.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid profile email');
      grants.add(await grant.save());
      return grant;
    },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    renderError: (context, out) => {
      context.type = 'json';
      context.body = out;
    },
  });
  const handle = provider.callback();

  async function read(request) {
    const parts = [];
    for await (const part of request) parts.push(part);
    return Buffer.concat(parts).toString();
  }

  async function control(request, response) {
    const change = JSON.parse(await read(request));
    if (change.person) people.set(change.person, { ...people.get(change.person), ...change.fields });
    if (change.down !== undefined) isDown = change.down;
    if (change.revoke) {
      for (const id of grants) await provider.Grant.adapter.revokeByGrantId(id);
      for (const id of grants) await (await provider.Grant.find(id))?.destroy();
    }
    response.end('{}');
  }

  async function interact(request, response) {
    if (request.method === 'GET') {
      response.setHeader('Content-Type', 'text/html');
      response.end('<form method="post"><label>Name <input name="login"></label><button>Sign in</button></form>');
      return;
    }
    const login = new URLSearchParams(await read(request)).get('login');
    const { amr, acr } = people.get(login) ?? {};
    const result = people.has(login)
      ? { login: { accountId: login, amr, acr } }
      : { error: 'access_denied', error_description: 'unknown person' };
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }

  server.on('request', (request, response) => {
    if (request.url === '/control') return control(request, response);
    if (isDown) return request.socket.destroy();
    if (request.url.startsWith('/interaction/')) return interact(request, response);
    return handle(request, response);
  });
  console.log(port);
});
