module github.com/postroad/postroad/clients/go

go 1.19
