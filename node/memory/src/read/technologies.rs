//! Technologies with their other names and what they are for, and alternatives of taste. Closed lists.

use crate::read::list::WordList;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One entry of the list.
#[derive(Debug)]
pub(crate) struct Technology {
    /// The name in comparison keys and tags.
    pub(crate) name: &'static str,
    /// What it is; the first is meant when no purpose says otherwise, but only if it is the only one.
    pub(crate) categories: &'static [&'static str],
}

/// name; other names; categories.
const TABLE: &[(&str, &str, &[&str])] = &[
    ("postgresql", "postgres,psql,pgsql,postgre,postgres sql", &["database"]),
    ("mysql", "my sql", &["database"]),
    ("mariadb", "maria db", &["database"]),
    ("sqlite", "sqlite3,sql lite", &["database"]),
    ("mongodb", "mongo,mongo db", &["database"]),
    ("cockroachdb", "cockroach db,crdb", &["database"]),
    ("cassandra", "apache cassandra", &["database"]),
    ("dynamodb", "dynamo db,dynamo", &["database"]),
    ("oracle", "oracle database,oracle db", &["database"]),
    ("sql-server", "sql server,mssql,microsoft sql server", &["database"]),
    ("firestore", "", &["database"]),
    ("couchdb", "couch db", &["database"]),
    ("couchbase", "", &["database"]),
    ("clickhouse", "click house", &["database", "analytics"]),
    ("snowflake", "", &["analytics"]),
    ("bigquery", "big query", &["analytics"]),
    ("redshift", "", &["analytics"]),
    ("duckdb", "", &["database", "analytics"]),
    ("neo4j", "", &["database"]),
    ("scylladb", "scylla", &["database"]),
    ("tidb", "", &["database"]),
    ("yugabytedb", "yugabyte", &["database"]),
    ("aurora", "", &["database"]),
    ("supabase", "", &["database"]),
    ("redis", "", &["cache", "database", "message-queue"]),
    ("valkey", "", &["cache", "database"]),
    ("memcached", "memcache", &["cache"]),
    ("kafka", "apache kafka", &["message-queue"]),
    ("rabbitmq", "rabbit mq,rabbit", &["message-queue"]),
    ("nats", "", &["message-queue"]),
    ("pulsar", "apache pulsar", &["message-queue"]),
    ("sqs", "amazon sqs", &["message-queue"]),
    ("activemq", "", &["message-queue"]),
    ("redpanda", "", &["message-queue"]),
    ("fastapi", "fast api", &["backend-framework"]),
    ("django", "", &["backend-framework"]),
    ("flask", "", &["backend-framework"]),
    ("express", "express.js,expressjs", &["backend-framework"]),
    ("nestjs", "nest.js", &["backend-framework"]),
    ("spring-boot", "spring boot,springboot,spring", &["backend-framework"]),
    ("rails", "ruby on rails,ror", &["backend-framework"]),
    ("laravel", "", &["backend-framework"]),
    ("axum", "", &["backend-framework"]),
    ("actix", "actix-web,actix web", &["backend-framework"]),
    ("gin", "", &["backend-framework"]),
    ("phoenix", "", &["backend-framework"]),
    ("next.js", "nextjs,next js", &["frontend-framework"]),
    ("react", "reactjs,react.js", &["frontend-framework"]),
    ("vue", "vuejs,vue.js", &["frontend-framework"]),
    ("angular", "angularjs", &["frontend-framework"]),
    ("svelte", "", &["frontend-framework"]),
    ("sveltekit", "svelte kit", &["frontend-framework"]),
    ("nuxt", "nuxt.js,nuxtjs", &["frontend-framework"]),
    ("remix", "", &["frontend-framework"]),
    ("astro", "", &["frontend-framework"]),
    ("solidjs", "solid.js", &["frontend-framework"]),
    ("htmx", "", &["frontend-framework"]),
    ("tailwind", "tailwind css,tailwindcss", &["css-framework"]),
    ("bootstrap", "", &["css-framework"]),
    ("kubernetes", "k8s,kube", &["deployment-platform"]),
    ("fargate", "aws fargate", &["deployment-platform"]),
    ("nomad", "", &["deployment-platform"]),
    ("ecs", "amazon ecs,aws ecs", &["deployment-platform"]),
    ("heroku", "", &["deployment-platform"]),
    ("cloud-run", "cloud run,google cloud run", &["deployment-platform"]),
    ("docker-swarm", "docker swarm", &["deployment-platform"]),
    ("openshift", "", &["deployment-platform"]),
    ("vercel", "", &["deployment-platform"]),
    ("netlify", "", &["deployment-platform"]),
    ("fly.io", "", &["deployment-platform"]),
    ("aws", "amazon web services", &["cloud"]),
    ("gcp", "google cloud,google cloud platform", &["cloud"]),
    ("azure", "microsoft azure", &["cloud"]),
    ("hetzner", "", &["cloud"]),
    ("digitalocean", "digital ocean", &["cloud"]),
    ("terraform", "", &["infrastructure-as-code"]),
    ("opentofu", "open tofu", &["infrastructure-as-code"]),
    ("pulumi", "", &["infrastructure-as-code"]),
    ("ansible", "", &["configuration-management"]),
    ("puppet", "", &["configuration-management"]),
    ("github-actions", "github actions,gh actions", &["ci"]),
    ("gitlab-ci", "gitlab ci", &["ci"]),
    ("jenkins", "", &["ci"]),
    ("circleci", "circle ci", &["ci"]),
    ("buildkite", "", &["ci"]),
    ("travis", "travis ci", &["ci"]),
    ("teamcity", "", &["ci"]),
    ("vim", "", &["editor"]),
    ("neovim", "nvim", &["editor"]),
    ("emacs", "", &["editor"]),
    ("vs-code", "vs code,vscode,visual studio code", &["editor"]),
    ("helix", "", &["editor"]),
    ("zed", "", &["editor"]),
    ("sublime-text", "sublime text,sublime", &["editor"]),
    ("intellij", "intellij idea", &["editor"]),
    ("pycharm", "", &["editor"]),
    ("nano", "", &["editor"]),
    ("tmux", "", &["terminal-multiplexer"]),
    ("zellij", "", &["terminal-multiplexer"]),
    ("bash", "", &["shell"]),
    ("zsh", "", &["shell"]),
    ("python", "python3", &["programming-language"]),
    ("rust", "", &["programming-language"]),
    ("go", "golang", &["programming-language"]),
    ("javascript", "", &["programming-language"]),
    ("typescript", "", &["programming-language"]),
    ("java", "", &["programming-language"]),
    ("kotlin", "", &["programming-language"]),
    ("scala", "", &["programming-language"]),
    ("ruby", "", &["programming-language"]),
    ("php", "", &["programming-language"]),
    ("elixir", "", &["programming-language"]),
    ("haskell", "", &["programming-language"]),
    ("swift", "", &["programming-language"]),
    ("c++", "cpp", &["programming-language"]),
    ("c#", "csharp", &["programming-language"]),
    ("zig", "", &["programming-language"]),
    ("node.js", "nodejs,node js", &["runtime"]),
    ("deno", "", &["runtime"]),
    ("bun", "", &["runtime"]),
    ("npm", "", &["package-manager"]),
    ("yarn", "", &["package-manager"]),
    ("pnpm", "", &["package-manager"]),
    ("poetry", "", &["package-manager"]),
    ("pytest", "", &["test-framework"]),
    ("jest", "", &["test-framework"]),
    ("vitest", "", &["test-framework"]),
    ("mocha", "", &["test-framework"]),
    ("playwright", "", &["browser-test-framework"]),
    ("cypress", "", &["browser-test-framework"]),
    ("selenium", "", &["browser-test-framework"]),
    ("webpack", "", &["bundler"]),
    ("vite", "", &["bundler"]),
    ("rollup", "", &["bundler"]),
    ("esbuild", "", &["bundler"]),
    ("graphql", "graph ql", &["api-style"]),
    ("rest", "", &["api-style"]),
    ("grpc", "", &["api-style"]),
    ("soap", "", &["api-style"]),
    ("elasticsearch", "elastic search,elastic", &["search-engine"]),
    ("opensearch", "open search", &["search-engine"]),
    ("meilisearch", "", &["search-engine"]),
    ("algolia", "", &["search-engine"]),
    ("solr", "", &["search-engine"]),
    ("typesense", "", &["search-engine"]),
    ("qdrant", "", &["vector-database"]),
    ("pinecone", "", &["vector-database"]),
    ("weaviate", "", &["vector-database"]),
    ("milvus", "", &["vector-database"]),
    ("pgvector", "", &["vector-database"]),
    ("nginx", "", &["web-server"]),
    ("caddy", "", &["web-server"]),
    ("apache", "apache httpd", &["web-server"]),
    ("haproxy", "", &["load-balancer"]),
    ("traefik", "", &["load-balancer"]),
    ("envoy", "", &["load-balancer"]),
    ("prometheus", "", &["monitoring"]),
    ("datadog", "data dog", &["monitoring"]),
    ("new-relic", "new relic", &["monitoring"]),
    ("sentry", "", &["error-tracking"]),
    ("slack", "", &["chat"]),
    ("microsoft-teams", "microsoft teams,ms teams", &["chat"]),
    ("discord", "", &["chat"]),
    ("jira", "", &["issue-tracker"]),
    ("linear", "", &["issue-tracker"]),
    ("github", "git hub", &["code-host"]),
    ("gitlab", "git lab", &["code-host"]),
    ("bitbucket", "", &["code-host"]),
    ("stripe", "", &["payment-provider"]),
    ("adyen", "", &["payment-provider"]),
    ("braintree", "", &["payment-provider"]),
    ("paypal", "pay pal", &["payment-provider"]),
    ("auth0", "", &["identity-provider"]),
    ("okta", "", &["identity-provider"]),
    ("keycloak", "", &["identity-provider"]),
    ("cognito", "", &["identity-provider"]),
    ("sendgrid", "", &["email-provider"]),
    ("mailgun", "", &["email-provider"]),
    ("postmark", "", &["email-provider"]),
    ("s3", "amazon s3,aws s3", &["object-storage"]),
    ("minio", "", &["object-storage"]),
    ("docker", "", &["container-engine"]),
    ("podman", "", &["container-engine"]),
    ("celery", "", &["task-queue"]),
    ("sidekiq", "", &["task-queue"]),
    ("temporal", "", &["workflow-engine"]),
    ("airflow", "apache airflow", &["workflow-engine"]),
    ("dagster", "", &["workflow-engine"]),
];

/// Names that are also plain words: a technology only with its capital, or as the object of a choice.
const PLAIN_WORDS: WordList = WordList::new(
    "go rest express rust swift gin phoenix remix astro bootstrap nomad aurora oracle \
     spring rabbit dynamo elastic sublime temporal linear slack apache envoy rails vim helix zed nano poetry jest mocha \
     stripe zig ruby react flask solid celery azure travis cypress puppet snowflake redshift bun java python kube",
);

/// Alternatives of taste: name, class.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("tab", "indentation"),
    ("space", "indentation"),
    ("dark", "theme"),
    ("light", "theme"),
    ("metric", "units"),
    ("imperial", "units"),
    ("12-hour", "clock"),
    ("24-hour", "clock"),
    ("qwerty", "keyboard"),
    ("dvorak", "keyboard"),
    ("colemak", "keyboard"),
    ("monorepo", "repository-layout"),
    ("polyrepo", "repository-layout"),
    ("monolith", "architecture"),
    ("microservice", "architecture"),
    ("celsius", "temperature"),
    ("fahrenheit", "temperature"),
    ("camelcase", "naming-style"),
    ("snake_case", "naming-style"),
    ("rebase", "merge-style"),
    ("squash", "merge-style"),
    ("tea", "drink"),
    ("coffee", "drink"),
    ("mac", "operating-system"),
    ("macos", "operating-system"),
    ("linux", "operating-system"),
    ("windows", "operating-system"),
];

/// Words that name a category: as a role ("as our cache") or a purpose ("for caching").
const CATEGORY_WORDS: &[(&str, &str)] = &[
    ("database", "database"),
    ("db", "database"),
    ("datastore", "database"),
    ("cache", "cache"),
    ("caching", "cache"),
    ("queue", "message-queue"),
    ("messaging", "message-queue"),
    ("broker", "message-queue"),
    ("event", "message-queue"),
    ("eventing", "message-queue"),
    ("editor", "editor"),
    ("ide", "editor"),
    ("shell", "shell"),
    ("ci", "ci"),
    ("supplier", "supplier"),
    ("vendor", "vendor"),
    ("search", "search-engine"),
    ("monitoring", "monitoring"),
    ("hosting", "deployment-platform"),
    ("bundler", "bundler"),
    ("chat", "chat"),
    ("cloud", "cloud"),
    ("orm", "orm"),
    ("analytics", "analytics"),
    ("framework", "framework"),
    ("language", "programming-language"),
    ("theme", "theme"),
    ("indentation", "indentation"),
];

fn table() -> &'static BTreeMap<String, Technology> {
    static MAP: LazyLock<BTreeMap<String, Technology>> = LazyLock::new(|| {
        let mut map = BTreeMap::new();
        for (name, aliases, categories) in TABLE {
            for alias in aliases.split(',').filter(|a| !a.is_empty()).chain([*name]) {
                map.insert(alias.to_owned(), Technology { name, categories });
            }
        }
        map
    });
    &MAP
}

/// The technology of that name: lower case, words parted by one blank.
pub(crate) fn technology(lower: &str) -> Option<&'static Technology> {
    if lower.len() > 40 { None } else { table().get(lower) }
}

/// Whether the name of a technology is also a plain word, so that its capital decides.
pub(crate) fn is_plain_word(lower: &str) -> bool {
    super::words::is_in(PLAIN_WORDS, lower)
}

/// The class of an alternative of taste, by singular.
pub(crate) fn alternative(singular: &str) -> Option<&'static str> {
    ALTERNATIVES
        .iter()
        .find(|(name, _)| *name == singular)
        .map(|(_, class)| *class)
}

/// The category that a word names, by singular.
pub(crate) fn category_of_word(singular: &str) -> Option<&'static str> {
    CATEGORY_WORDS
        .iter()
        .find(|(name, _)| *name == singular)
        .map(|(_, category)| *category)
}
